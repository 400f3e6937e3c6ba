import HTTPSemantics

@testable import ObjectStorage

extension FuzzTarget {
    /// Documents of an object storage. A document that is accepted has the same meaning after it is written and read again,
    /// and the error that a response means fits on a line.
    static let storageDocuments = FuzzTarget(
        name: "storage-documents",
        dictionary: [
            "<Error>", "</Error>", "<Code>", "</Code>", "<Message>", "<Key/>", "<a b='c'>", "&amp;", "&#x0a;", "&#",
            ";",
            "<![CDATA[", "]]>", "<!--", "-->", "<?xml?>", "SECRET-TOKEN",
        ],
        seeds: { generator in
            (0..<100).map { _ in
                let code = generator.pick(["NoSuchKey", "SlowDown", "RequestTimeTooSkewed", "", "a&lt;&#10;b"])
                let message = generator.pick([
                    "Access Denied", "<![CDATA[<&]]>", "SECRET-TOKEN", "<b>nested</b>", "\u{1}",
                ])
                let other = generator.pick(["", "<Region>eu-west-1</Region>", "<Endpoint a=\"b\">h</Endpoint>", "<x/>"])
                return Array(
                    "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>\(message)</Message>\(other)</Error>"
                        .utf8)
            }
        },
        check: { input throws(Violation) in
            let bytes = Array(input)
            if let document = StorageDocument(bytes) {
                try require(StorageDocument(Array(written(document).utf8)) == document, "\(document) is not read again")
            }
            for status: Status in [307, 403] {
                let response = StorageResponse(
                    status: status, fields: ["Date": "Fri, 24 May 2013 00:20:00 GMT"], content: bytes, receivedAt: 0,
                    secret: "SECRET-TOKEN")
                let text = "\(response.error)"
                try require(!text.contains("SECRET-TOKEN"), "\(text) contains a secret")
                try require(
                    text.utf8.count < 4000 && !text.unicodeScalars.contains { $0.value < 0x20 },
                    "\(text) is not one line")
            }
        })

    private static func written(_ element: StorageDocument) -> String {
        let text = element.text.unicodeScalars.map { "&#\($0.value);" }.joined()
        return "<\(element.name)>" + text + element.children.map(written).joined() + "</\(element.name)>"
    }
}
