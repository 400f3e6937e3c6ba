import HTTPSemantics

/// A request as it arrived at a server of a test.
package struct ReceivedRequest: Sendable {
    /// The request line and the fields, up to and including the empty line.
    package let head: [UInt8]
    package let method: String
    /// The target as it arrived.
    package let target: String
    package let fields: Fields
    /// The number of its connection, from 1.
    package let connection: Int
    package let arrivedAt = ContinuousClock.now
    /// The number of bytes of content that the script has read, without the framing of chunks.
    package private(set) var contentCount: Int64 = 0
    /// The first bytes of the content.
    package private(set) var content: [UInt8] = []
    /// Whether the script has read the content to its end.
    package private(set) var isComplete = false

    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }
    /// The head as text.
    package var text: String { String(decoding: head, as: UTF8.self) }
    /// The field lines without their line endings, as they arrived.
    package var lines: [String] { text.split(separator: "\r\n").dropFirst().map(String.init) }

    /// Parses a head strictly; `nil` if it deviates from RFC 9112.
    package init?(_ head: [UInt8], connection: Int) {
        guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return nil }
        var lines: [ArraySlice<UInt8>] = []
        var remaining = head.dropLast(2)
        while let end = remaining.firstIndex(of: 0x0D) {
            guard end + 1 < remaining.endIndex, remaining[end + 1] == 0x0A else { return nil }
            lines.append(remaining[..<end])
            remaining = remaining[(end + 2)...]
        }
        guard remaining.isEmpty, let first = lines.first else { return nil }
        let words = String(decoding: first, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, Fields.isValidName(String(words[0])), !words[1].isEmpty, words[2] == "HTTP/1.1",
            first.allSatisfy({ $0 > 0x1F && $0 != 0x7F })
        else { return nil }
        var fields = Fields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: 0x3A) else { return nil }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            guard Fields.isValidName(name), line[colon...].allSatisfy({ $0 > 0x1F && $0 != 0x7F || $0 == 0x09 })
            else { return nil }
            fields.append(name, String(decoding: line[(colon + 1)...], as: UTF8.self))
        }
        let lengths = fields.values("Content-Length")
        let codings = fields.values("Transfer-Encoding")
        guard fields.values("Host").count == 1, lengths.count + codings.count <= 1,
            lengths.allSatisfy({ $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } && Int64($0) != nil }),
            codings.allSatisfy({ $0 == "chunked" })
        else { return nil }
        self.head = head
        method = String(words[0])
        target = String(words[1])
        self.fields = fields
        self.connection = connection
    }

    /// Records a part of the content.
    /// - Parameter maxCount: the number of bytes to keep of the content.
    package mutating func note(_ part: ArraySlice<UInt8>, isComplete: Bool, keeping maxCount: Int) {
        contentCount += Int64(part.count)
        content += part.prefix(max(0, maxCount - content.count))
        self.isComplete = isComplete
    }
}
