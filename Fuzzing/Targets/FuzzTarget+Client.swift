import Foundation
import HTTPSemantics
import ResumableUpload

@testable import HTTPTransport
@testable import ResumableTransfer

extension FuzzTarget {
    /// Checks problem documents: clients parse any input, and read the server's values from a document of the server.
    static let problems = FuzzTarget(
        name: "problems",
        dictionary: [
            "{\"type\":\"", "\"expected-offset\":", "\"title\":", "null", "true", "1e999", "-1", "\\u0000", "\\ud800",
            "[[",
            "https://iana.org/assignments/http-problem-types#mismatching-upload-offset",
        ],
        seeds: { generator in
            let types = [
                "about:blank", "https://iana.org/assignments/http-problem-types#mismatching-upload-offset", "ü",
            ]
            return (0..<100).map { index -> [UInt8] in
                let number = generator.number()
                if index % 2 == 0 {
                    return ProblemDetails(
                        type: generator.pick(types), status: 409, detail: "d",
                        members: [("expected-offset", .integer(number)), ("provided-offset", .string("x"))]
                    ).json()
                }
                return Array(
                    generator.pick([
                        "{\"expected-offset\": \(number).5}", "{\"type\":7}", "{\"type\":\"\\ud83d\\ude00\"}", "[]",
                        "{\"expected-offset\":\"4\",\"type\":null}", String(repeating: "[", count: 600), "\u{FEFF}{}",
                        "{\"type\":\"a\",\"type\":\"b\",\"expected-offset\":\(number)}",
                    ]).utf8)
            }
        },
        check: { input throws(Violation) in
            let json: Fields = ["Content-Type": "Application/Problem+JSON; charset=utf-8"]
            if let problem = ProblemType(content: Array(input), fields: json), let offset = problem.expectedOffset {
                try require((0...UploadLimits.largestInteger).contains(offset), "an offset of \(offset)")
            }
            let text = InputReader(input).text
            _ = ProblemType(content: Array("{}".utf8), fields: ["Content-Type": text])
            let written = ProblemDetails(
                type: text, title: text, status: 409, detail: text, code: text,
                members: [(text, .string(text)), ("expected-offset", .integer(4))])
            try require(written.json().count <= 6 * (6 * input.count) + 200, "the document is too long")
            let read = ProblemType(content: written.json(), fields: json)
            // Text with the name of another member would replace that member.
            if text != "expected-offset", text != "type", written.json().count <= 64 << 10 {
                try require(
                    read?.type.utf8.elementsEqual(text.utf8) ?? false,
                    "\(text.debugDescription) is read as \(String(describing: read))")
            }
        })

    /// Checks the parser of response heads, which gets the lines from libcurl, and the parsers of the fields.
    static let responseHeads = FuzzTarget(
        name: "response-heads",
        dictionary: [
            "HTTP/1.1 104 Upload Resumption Supported\r\n", "HTTP/1.1 201 Created\r\n", "Location: ", "Upload-Offset: ",
            "Upload-Limit: ", "Content-Length: ", "\r\n\r\n", "Upload-Draft-Interop-Version: 8\r\n", "max-age=",
            " folded\r\n",
        ],
        seeds: { generator in
            (0..<100).map { _ in
                let lines = [
                    "Location: /uploads/x", "Upload-Offset: \(generator.number())", "Upload-Complete: ?1",
                    "Content-Length: 5", "Content-Length: 5, 6", " folded",
                    "Upload-Limit: max-size=\(generator.number())",
                    "Location: https://user:pw@other.example/%2e?q#f", "no colon", "Upload-Draft-Interop-Version: 8",
                ]
                let head = (0..<Int.random(in: 0...5, using: &generator)).map { _ in generator.pick(lines) + "\r\n" }
                let status = generator.pick(["HTTP/1.1 104 x", "HTTP/1.1 200 OK", "HTTP/2 204", "HTTP/1.1 101 x", "x"])
                return Array("\(status)\r\n\(head.joined())\r\nHTTP/1.1 201 Created\r\n\r\n".utf8)
            }
        },
        check: { input throws(Violation) in
            var reader = ResponseHeadReader(base: RequestURI("http://localhost/files/a"))
            var remaining = input[...]
            while let end = remaining.firstIndex(of: 0x0A) {
                let line = UnsafeRawBufferPointer(rebasing: remaining[...end])
                remaining = remaining[(end + 1)...]
                switch reader.read(line) {
                case .more: continue
                case .interim(let head):
                    try require(head.status.isInformational, "\(head.status) is interim")
                    try checkResponse(head)
                case .final(let head):
                    try require(!head.status.isInformational, "\(head.status) is final")
                    try checkResponse(head)
                case .refused: return
                }
            }
        })

    private static func checkResponse(_ head: ClientResponseHead) throws(Violation) {
        guard let base = RequestURI("http://localhost/files/a") else { throw Violation("no base") }
        for reference in head.fields.values("Location") {
            guard let location = base.location(reference) else { continue }
            try require(
                RequestURI(location.uri)?.text == location.uri, "\(reference) resolves to \(location.uri), no plain URI"
            )
        }
        for dialect in Dialect.allCases { _ = UploadLimits(parsing: head.fields, dialect: dialect) }
        if let range = head.fields["Content-Range"] { _ = ContentRange(parsing: range) }
    }
}
