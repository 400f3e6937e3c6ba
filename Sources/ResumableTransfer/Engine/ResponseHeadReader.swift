import HTTPSemantics
import ResumableUpload

/// Parses the heads of a response, interim and final, from its header lines.
struct ResponseHeadReader {
    enum Outcome {
        case more
        case interim(ClientResponseHead)
        case final(ClientResponseHead)
        case refused(TransportFailure)
    }

    /// The maximum number of bytes in one header section, including the status line.
    static let maximumSize = 256 << 10

    /// The URI of the request, against which `Location` is resolved.
    private let uri: RequestURI?
    private var statusLine: (status: Status, version: String)?
    private var lines: [(name: String, value: String)] = []
    private var size = 0
    /// Whether the final head was read. Only trailers follow it, which are not merged into it.
    private var isOver = false

    init(uri: String) {
        self.uri = RequestURI(uri)
    }

    /// Reads the next line, including its line ending.
    mutating func read(_ line: UnsafeRawBufferPointer) -> Outcome {
        if isOver { return .more }
        size += line.count
        guard size <= Self.maximumSize else { return .refused(.protocolViolation("The header section is too large.")) }
        var end = line.count
        while end > 0, line[end - 1] == UInt8(ascii: "\n") || line[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        let text = String(decoding: line[..<end], as: UTF8.self)
        guard statusLine != nil else { return begin(text) }
        if text.isEmpty { return finish() }
        if text.utf8.first == UInt8(ascii: " ") || text.utf8.first == UInt8(ascii: "\t") {
            // obs-fold (RFC 9112 §5.2): the line continues the one before.
            if !lines.isEmpty { lines[lines.count - 1].value += " " + trimmed(text[...]) }
        } else if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
            lines.append((String(text[..<colon]), trimmed(text[text.index(after: colon)...])))
        }
        return .more
    }

    private mutating func begin(_ text: String) -> Outcome {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/"), parts[1].utf8.count == 3, let code = Int(parts[1]),
            code >= 100
        else { return .refused(.protocolViolation("The status line is invalid.")) }
        statusLine = (Status(rawValue: code), String(parts[0]))
        return .more
    }

    private mutating func finish() -> Outcome {
        guard let (status, version) = statusLine else { return .more }
        let fields = Fields(lines)
        let locations = fields.values("Location")
        let head = ClientResponseHead(
            status: status, fields: fields, location: locations.count == 1 ? uri?.location(locations[0]) : nil,
            version: version)
        statusLine = nil
        lines = []
        size = 0
        if status == .switchingProtocols {
            return .refused(.protocolViolation("The server switched to a protocol that was not requested."))
        }
        if status.isInformational { return .interim(head) }
        isOver = true
        // Two recipients could choose different lengths and disagree about the end (RFC 9110 section 8.6).
        let lengths = head.fields.values("Content-Length").flatMap { $0.split(separator: ",") }.map { trimmed($0) }
        if Set(lengths).count > 1 {
            return .refused(.protocolViolation("The response has different values of Content-Length."))
        }
        return .final(head)
    }

    private func trimmed(_ text: Substring) -> String {
        var text = text.utf8
        while let first = text.first, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") { text.removeFirst() }
        while let last = text.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\t") { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }
}
