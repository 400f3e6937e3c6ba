import HTTPSemantics

/// Parses the response to one request as it arrives (RFC 9112), more strictly than libcurl: see ``ResponseHeadReader``.
/// Its content is kept, without the framing, until it is read.
struct ArrivingResponse {
    /// The part of the response that follows in the input.
    private enum Place {
        case head
        /// The number of bytes of content that have not arrived.
        case content(Int64)
        case chunks
        /// Content that the end of the connection ends.
        case contentToEnd
        case end
    }

    /// The number of bytes of content after which no more is received before some of it is read.
    private static let capacity = 256 << 10

    private let isResponseToHead: Bool
    private var place = Place.head
    private var reader = ResponseHeadReader(base: nil, isStrict: true)
    private var decoder = ChunkedDecoder()
    /// The start of an incomplete line of a head.
    private var line: [UInt8] = []
    private var headSize: Int64 = 0
    /// The interim responses that have arrived. The caller removes those that it has handled.
    var interims: [ClientResponseHead] = []
    /// The head of the final response.
    private(set) var head: ClientResponseHead?
    private var content: [UInt8] = []
    /// The number of bytes at the beginning of `content` that were read.
    private var consumed = 0
    /// The number of bytes of content that have arrived.
    private(set) var received: Int64 = 0
    /// The number of bytes of the final head, once it is complete, and of the content. Interim responses and parts of a
    /// head do not count: a server can send them without end.
    private(set) var moved: Int64 = 0
    /// Whether anything has arrived.
    private(set) var hasBegun = false
    /// Whether input has arrived after the end.
    private var hasSurplus = false
    /// Whether the connection has ended.
    private var hasInputEnded = false
    private(set) var failure: TransportFailure?

    init(to request: TransportRequest) { isResponseToHead = request.method == .head }

    /// Whether the response has arrived to its end.
    var isComplete: Bool { if case .end = place { failure == nil } else { false } }

    // MARK: Input

    /// Handles input, which it changes.
    mutating func receive(_ input: UnsafeMutableRawBufferPointer) {
        hasBegun = true
        var start = 0
        while start < input.count, failure == nil {
            let remaining = UnsafeMutableRawBufferPointer(rebasing: input[start...])
            switch place {
            case .head: start += receiveHead(UnsafeRawBufferPointer(remaining))
            case .content(let missing):
                let count = Int(min(missing, Int64(remaining.count)))
                keep(UnsafeRawBufferPointer(rebasing: remaining[..<count]))
                place = Int64(count) == missing ? .end : .content(missing - Int64(count))
                start += count
            case .chunks: start += receiveChunks(remaining)
            case .contentToEnd:
                keep(UnsafeRawBufferPointer(remaining))
                return
            case .end:
                hasSurplus = true
                return
            }
        }
    }

    /// - Returns: the number of bytes that belong to the head.
    private mutating func receiveHead(_ input: UnsafeRawBufferPointer) -> Int {
        guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else {
            line += input
            if line.count > ResponseHeadReader.maxStrictSize {
                failure = .protocolViolation("The header section is too large.")
            } else if reader.isAwaitingStatusLine, !zip(line, "HTTP/1.".utf8).allSatisfy(==) {
                // The connection could end before the line does.
                failure = .protocolViolation("The status line is invalid.")
            }
            return input.count
        }
        let piece = UnsafeRawBufferPointer(rebasing: input[...end])
        headSize += Int64(line.count + piece.count)
        let outcome: ResponseHeadReader.Outcome
        if line.isEmpty {
            outcome = reader.read(piece)
        } else {
            line += piece
            outcome = line.withUnsafeBytes { reader.read($0) }
            line = []
        }
        switch outcome {
        case .more: break
        case .interim(let head):
            interims.append(head)
            headSize = 0
        case .final(let head):
            self.head = head
            moved += headSize
            place = placeAfter(head)
        case .refused(let failure): self.failure = failure
        }
        return end + 1
    }

    /// The framing of the content (RFC 9112 section 6.3). The reader has verified the fields.
    private func placeAfter(_ head: ClientResponseHead) -> Place {
        if isResponseToHead || head.status.isContentForbidden { return .end }
        if head.fields.contains("Transfer-Encoding") { return .chunks }
        // The value can be a list of equal numbers.
        guard let value = head.fields.values("Content-Length").first,
            let length = Int64(value.prefix { $0.isWholeNumber })
        else { return .contentToEnd }
        return length == 0 ? .end : .content(length)
    }

    /// - Returns: the number of bytes that belong to the content.
    private mutating func receiveChunks(_ input: UnsafeMutableRawBufferPointer) -> Int {
        guard let start = input.baseAddress else { return 0 }
        let (consumed, produced, outcome) = decoder.decode(UnsafeRawBufferPointer(input), to: start)
        keep(UnsafeRawBufferPointer(rebasing: input[..<produced]))
        switch outcome {
        case .incomplete: break
        case .complete: place = .end
        case .refused(let refusal): failure = .protocolViolation(refusal.detail)
        }
        return consumed
    }

    /// Handles the end of the connection. It can be the end of the content.
    mutating func endInput() {
        hasInputEnded = true
        if case .contentToEnd = place { place = .end }
    }

    /// Whether the connection can be used again after the complete response.
    var isConnectionKept: Bool {
        guard let head, isComplete, !hasSurplus, !hasInputEnded, !isEndedByClosing, head.version == "HTTP/1.1" else {
            return false
        }
        // The server could send content although the request or the status forbids it. On this connection the next
        // response would then begin with that content.
        return !(isResponseToHead || head.status.isContentForbidden) || head.fields.hasNoContent
    }

    private var isEndedByClosing: Bool { head?.fields.hasConnectionOption("close") ?? false }

    // MARK: Content

    var hasRoom: Bool { content.count - consumed < Self.capacity }

    private mutating func keep(_ new: UnsafeRawBufferPointer) {
        // A reader that never reaches the end must not make the array longer and longer.
        if consumed >= Self.capacity {
            content.removeFirst(consumed)
            consumed = 0
        }
        content += new
        received += Int64(new.count)
        moved += Int64(new.count)
    }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, content.count - consumed)
        content.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[consumed..<consumed + count]))
        }
        consumed += count
        if consumed == content.count {
            content.removeAll(keepingCapacity: true)
            consumed = 0
        }
        return count
    }

    mutating func readAll() -> [UInt8] {
        defer { (content, consumed) = ([], 0) }
        return consumed == 0 ? content : Array(content[consumed...])
    }
}

extension Fields {
    /// Whether the fields of a response state no content: no `Transfer-Encoding`, and no `Content-Length` except 0.
    fileprivate var hasNoContent: Bool {
        !contains("Transfer-Encoding") && values("Content-Length").allSatisfy { $0 == "0" }
    }
}
