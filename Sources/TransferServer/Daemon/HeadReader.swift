import HTTPSemantics

/// Reads the head of one request (RFC 9112 sections 2 to 5) as it is received, more strictly than libmicrohttpd:
/// everything that two recipients could interpret differently is rejected.
struct HeadReader {
    enum Outcome {
        /// All input belongs to the head, and more has to follow.
        case incomplete
        case complete
        case refused(FramingRefusal)
    }

    static let maxSize = 64 << 10
    static let maxLines = 1000

    /// The head so far. Until the request line is complete, its version is HTTP/1.1.
    private(set) var head = RequestHead(method: Method(rawValue: "-"), target: "")
    /// Whether the request line is complete.
    private(set) var hasRequestLine = false
    /// The start of an incomplete line.
    private var line: [UInt8] = []
    private var size = 0
    /// The number of bytes of empty lines before the request line, which `size` does not include.
    private var emptySize = 0
    private var lines = 0

    mutating func read(_ input: UnsafeRawBufferPointer) -> (consumed: Int, outcome: Outcome) {
        var start = 0
        while start < input.count {
            // The remaining bytes of this line, including its end if it has arrived.
            let end = input[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? input.count
            let piece = UnsafeRawBufferPointer(rebasing: input[start..<end])
            size += piece.count
            guard size <= Self.maxSize, lines <= Self.maxLines else {
                return (start, .refused(hasRequestLine ? .headTooLarge : .targetTooLong))
            }
            guard let last = piece.last, last == 0x0A else {
                // A CR as the last byte can still be followed by its LF.
                guard line.last != 0x0D, !Self.hasForbiddenBytes(piece.dropLast()), piece.last != 0 else {
                    return (end, .refused(.malformedHead))
                }
                line += piece
                return (end, .incomplete)
            }
            let outcome: Outcome
            if line.isEmpty {
                outcome = endLine(piece)
            } else {
                line += piece
                let complete = line
                line = []
                outcome = complete.withUnsafeBytes { endLine($0) }
            }
            if case .incomplete = outcome {} else { return (end, outcome) }
            start = end
        }
        return (start, .incomplete)
    }

    private static func hasForbiddenBytes(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.contains { $0 == 0 || $0 == 0x0D }
    }

    /// - Parameter bytes: a line with its LF.
    private mutating func endLine(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        let text = bytes.dropLast(2)
        guard bytes.count >= 2, bytes[bytes.count - 2] == 0x0D, !Self.hasForbiddenBytes(text) else {
            return .refused(.malformedHead)
        }
        if text.isEmpty {
            // Empty lines before a request are ignored (RFC 9112 section 2.2).
            if hasRequestLine { return .complete }
            (emptySize, size) = (emptySize + bytes.count, 0)
            return emptySize <= Self.maxSize ? .incomplete : .refused(.malformedRequestLine)
        }
        if hasRequestLine {
            lines += 1
            return readField(text) ? .incomplete : .refused(.malformedHead)
        }
        return readRequestLine(text) ? .incomplete : .refused(.malformedRequestLine)
    }

    private mutating func readRequestLine(_ text: Slice<UnsafeRawBufferPointer>) -> Bool {
        // Three words with one space between them. The version must not have a space, so it is the last word.
        guard let first = text.firstIndex(of: 0x20), let last = text.lastIndex(of: 0x20), first < last else {
            return false
        }
        let target = text[(first + 1)..<last]
        let method = Self.string(text[..<first])
        guard let version = ProtocolVersion(parsing: Self.string(text[(last + 1)...])), Fields.isValidName(method),
            !target.isEmpty, !target.contains(0x20)
        else { return false }
        // A later minor version is handled as HTTP/1.1 (RFC 9110 section 2.5).
        head = RequestHead(
            method: Method(rawValue: method), target: Self.string(target),
            version: version.major == 1 && version > .http11 ? .http11 : version)
        head.fields.reserveCapacity(16)
        hasRequestLine = true
        return true
    }

    private mutating func readField(_ text: Slice<UnsafeRawBufferPointer>) -> Bool {
        // A line that begins with white space would continue the previous line, which is obsolete (RFC 9112 section
        // 5.2); it is rejected.
        guard let first = text.first, !Self.isBlank(first), let colon = text.firstIndex(of: 0x3A),
            colon > text.startIndex
        else { return false }
        var value = text[(colon + 1)...]
        while let byte = value.first, Self.isBlank(byte) { value.removeFirst() }
        while let byte = value.last, Self.isBlank(byte) { value.removeLast() }
        head.fields.append(
            Self.string(text[..<colon]), String(fieldBytes: UnsafeRawBufferPointer(rebasing: value)))
        return true
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func string(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
    }
}

/// The head of a request as it was received, and its evaluation. libmicrohttpd receives only the ``substitute``.
struct ReceivedRequest {
    enum Evaluation {
        case accepted(MessageFraming, RequestTarget)
        /// The request is rejected, and nothing after it on the connection is served.
        case refused(FramingRefusal)
    }

    /// The head, which can be incomplete if the request is rejected.
    var head: RequestHead
    let evaluation: Evaluation

    /// Evaluates a complete head.
    init(_ head: RequestHead) {
        self.head = head
        switch (MessageFraming.evaluate(head), RequestTarget(parsing: head.target)) {
        case (.failure(let refusal), _): evaluation = .refused(refusal)
        case (.success, nil): evaluation = .refused(.malformedTarget)
        case (.success(let framing), let target?): evaluation = .accepted(framing, target)
        }
    }

    init(_ head: RequestHead, refused refusal: FramingRefusal) {
        self.head = head
        evaluation = .refused(refusal)
    }

    /// The head that libmicrohttpd receives instead of the original: only what it needs to wait for content and to
    /// format the response.
    var substitute: [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(160)
        head += (self.head.method == .head ? "HEAD / " : "POST / ").utf8
        head += (self.head.version < .http11 ? "HTTP/1.0\r\n" : "HTTP/1.1\r\n").utf8
        head += "Host: localhost\r\n".utf8
        switch evaluation {
        case .accepted(.none, _), .accepted(.length(0), _): break
        // libmicrohttpd receives no content, only signals that content has arrived. It expects content of a rejected
        // request, too, so that the server can reject the request and read content that still arrives.
        case .accepted, .refused: head += "Transfer-Encoding: chunked\r\n".utf8
        }
        if self.head.fields.hasConnectionOption("close") {
            head += "Connection: close\r\n".utf8
        } else if self.head.fields.hasConnectionOption("keep-alive") {
            head += "Connection: keep-alive\r\n".utf8
        }
        head += "\r\n".utf8
        return head
    }
}
