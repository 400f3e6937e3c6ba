import HTTPSemantics

/// Parses the input of a connection (RFC 9112) and writes it in a normalized form, which is the only input of
/// libmicrohttpd.
///
/// The parser of libmicrohttpd is lax, differs between versions and from other recipients, and sends its own pages for
/// some malformed requests. So libmicrohttpd receives one request at a time: a head that this type has written, a signal
/// whenever content may have arrived, and the end of the content. On a signal libmicrohttpd calls the server, which
/// reads the content itself. Therefore this type and libmicrohttpd always agree about the end of a request, and content
/// needs no space in libmicrohttpd's buffer.
struct RequestReader {
    /// The result of a read.
    enum Arrival: Equatable {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// No bytes are available now.
        case none
        /// The end of the input: 0 for the end of the connection, otherwise an error number of the source: of recv(2)
        /// or of GnuTLS.
        case end(Int)
    }

    /// The result of ``readContent(into:from:)``.
    enum Content: Equatable {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// No content is available now.
        case none
        /// The content from here on is malformed.
        case malformed(FramingRefusal)
    }

    private enum Place {
        case head
        /// The number of bytes of content that were not read yet.
        case content(Int64)
        case chunks(ChunkedDecoder)
        /// All content was read, and libmicrohttpd has not received its end yet.
        case contentEnd
        /// The content is malformed from here on, and the server has not tried to read it yet.
        case malformed(FramingRefusal)
        /// After a rejected request all input is discarded.
        case discarding
    }

    /// The number of bytes to receive in one call while a head is read. The number is small, because bytes after the
    /// head must be copied.
    private static let headPiece = 16 << 10
    /// The number of bytes to receive in one call of ``receiveContent(atMost:from:_:)``.
    private static let contentPiece = 64 << 10
    /// The maximum number of bytes that are discarded after a rejected request, so that the response reaches a client
    /// that is still sending. After these bytes the connection is closed.
    static let maxDiscarded: Int64 = 256 << 20
    /// A chunk of any content, on which libmicrohttpd calls the server, and the last chunk.
    private static let (signal, lastChunk) = (Array("1\r\n?\r\n".utf8), Array("0\r\n\r\n".utf8))

    private var place = Place.head
    /// Whether libmicrohttpd has received the end of the content together with the head.
    private var isEndWritten = false
    private var head = HeadReader()
    /// Bytes that were received together with the end of a head or of a message, and that follow this end.
    private var pending: [UInt8] = []
    private var pendingStart = 0
    private var end: Int?
    /// The number of discarded bytes.
    private var discarded: Int64 = 0
    /// Whether the source may have more input that can be read without waiting.
    private(set) var canHaveMore = false

    /// The last request whose head was written for libmicrohttpd; `nil` after ``nextRequest()`` has returned it.
    private var request: ReceivedRequest?

    /// Whether a read would return bytes or the end of the input, even if the socket has no input.
    var hasInput: Bool {
        switch place {
        case .contentEnd, .malformed: true
        default: pendingStart < pending.count || end != nil || canHaveMore
        }
    }

    /// Returns the last request whose head was written for libmicrohttpd. Each request is returned only once; `nil` if
    /// there is no new request.
    mutating func nextRequest() -> ReceivedRequest? {
        defer { request = nil }
        return request
    }

    /// Receives the content of the last request, if it has a declared length and is short, so that it can be read without
    /// waiting. Waits only if a part of the content has arrived: other clients may wait for a response before they send
    /// content.
    /// - Parameters:
    ///   - limit: the maximum number of missing bytes.
    ///   - awaitInput: waits for input; returns false if there is none in time.
    /// - Returns: whether all content has arrived.
    mutating func receiveContent(
        atMost limit: Int, from source: some ByteSource, _ awaitInput: () -> Bool
    ) -> Bool {
        guard case .content(let remaining) = place else { if case .head = place { return true } else { return false } }
        guard remaining - Int64(pending.count - pendingStart) <= limit, end == nil else { return false }
        while pending.count - pendingStart < remaining {
            let missing = Int(remaining) - (pending.count - pendingStart)
            let arrival = withUnsafeTemporaryAllocation(byteCount: min(missing, Self.contentPiece), alignment: 1) {
                piece in
                let arrival = source.receive(into: piece)
                if case .bytes(let count) = arrival { pending += piece.prefix(count) }
                return arrival
            }
            switch arrival {
            case .bytes: break
            case .none:
                if pendingStart == pending.count || !awaitInput() { return false }
            case .end(let code):
                end = code
                return false
            }
        }
        canHaveMore = source.isRecordwise
        return true
    }

    /// Discards all further input.
    mutating func discard() {
        place = .discarding
        (pending, pendingStart) = ([], 0)
    }

    /// Fills `output` with normalized input for libmicrohttpd.
    mutating func read(into output: UnsafeMutableRawBufferPointer, from source: some ByteSource) -> Arrival {
        switch place {
        case .head: return withInput(source) { $0.readHead(into: output, &$1) }
        case .content, .chunks:
            if let end, pendingStart == pending.count { return .end(end) }
            return write(Self.signal, to: output)
        case .malformed: return write(Self.signal, to: output)
        case .contentEnd:
            place = .head
            return write(Self.lastChunk, to: output)
        case .discarding:
            return withInput(source) { reader, input in
                if case .bytes(let count) = input.next(into: output) {
                    reader.discarded += Int64(count)
                    if reader.discarded >= Self.maxDiscarded { input.end = 0 }
                }
                return input.last
            }
        }
    }

    private mutating func withInput<Source: ByteSource, Result>(
        _ source: Source, _ body: (inout RequestReader, inout Input<Source>) -> Result
    ) -> Result {
        var input = Input(source: source, end: end)
        defer {
            end = input.end
            canHaveMore = source.isRecordwise && !input.isDrained
        }
        return body(&self, &input)
    }

    private mutating func write(_ bytes: [UInt8], to output: UnsafeMutableRawBufferPointer) -> Arrival {
        guard bytes.count <= output.count else {
            // This should not occur: libmicrohttpd's buffer is large enough.
            discard()
            return .end(0)
        }
        output.copyBytes(from: bytes)
        return .bytes(bytes.count)
    }

    // MARK: - Heads

    private mutating func readHead(
        into output: UnsafeMutableRawBufferPointer, _ input: inout Input<some ByteSource>
    ) -> Arrival {
        while true {
            let outcome: HeadReader.Outcome
            if pendingStart < pending.count {
                let (bytes, start) = (pending, pendingStart)
                let (consumed, result) = bytes.withUnsafeBytes {
                    head.read(UnsafeRawBufferPointer(rebasing: $0[start...]))
                }
                consume(consumed)
                outcome = result
            } else {
                let piece = UnsafeMutableRawBufferPointer(rebasing: output.prefix(Self.headPiece))
                guard case .bytes(let count) = input.next(into: piece) else { return input.last }
                let (consumed, result) = head.read(UnsafeRawBufferPointer(rebasing: piece.prefix(count)))
                keep(UnsafeRawBufferPointer(rebasing: piece[consumed..<count]))
                outcome = result
            }
            switch outcome {
            case .incomplete: continue
            case .complete: return begin(ReceivedRequest(head.head), into: output)
            case .refused(let refusal): return begin(ReceivedRequest(head.head, refused: refusal), into: output)
            }
        }
    }

    private mutating func begin(_ request: ReceivedRequest, into output: UnsafeMutableRawBufferPointer) -> Arrival {
        self.request = request
        head = HeadReader()
        switch request.evaluation {
        case .accepted(.none, _), .accepted(.length(0), _): place = .head
        case .accepted(.length(let length), _): place = .content(length)
        case .accepted(.chunked, _): place = .chunks(ChunkedDecoder())
        case .refused: discard()
        }
        var bytes = request.substitute
        // libmicrohttpd sends a response sooner, with one system call less, if it receives the entire request at once.
        // The buffer of ``readContent(into:from:)`` has room for content of this size.
        isEndWritten =
            if case .content(let length) = place {
                length <= Int64(Self.headPiece) && pending.count - pendingStart >= length
            } else {
                false
            }
        if isEndWritten { bytes += Self.signal + Self.lastChunk }
        return write(bytes, to: output)
    }

    // MARK: - Content

    /// Fills `output` with content of the last request that has arrived, decoded.
    /// - Parameter output: at least as large as ``headPiece``, so that it has room for content whose end was written
    ///   together with the head.
    mutating func readContent(
        into output: UnsafeMutableRawBufferPointer, from source: some ByteSource
    ) -> Content {
        switch place {
        case .content(let length): return withInput(source) { $0.readBytes(of: length, into: output, &$1) }
        case .chunks(let decoder): return withInput(source) { $0.readChunks(by: decoder, into: output, &$1) }
        case .malformed(let refusal):
            discard()
            return .malformed(refusal)
        case .head, .contentEnd, .discarding: return .none
        }
    }

    private mutating func readBytes(
        of length: Int64, into output: UnsafeMutableRawBufferPointer, _ input: inout Input<some ByteSource>
    ) -> Content {
        let limit = Int(min(length, Int64(output.count)))
        var filled = 0
        while filled < limit {
            let room = UnsafeMutableRawBufferPointer(rebasing: output[filled..<limit])
            if pendingStart < pending.count {
                let count = min(room.count, pending.count - pendingStart)
                room.copyBytes(from: pending[pendingStart..<(pendingStart + count)])
                consume(count)
                filled += count
            } else {
                guard case .bytes(let count) = input.next(into: room) else { break }
                filled += count
            }
        }
        if filled < length {
            place = .content(length - Int64(filled))
        } else {
            place = isEndWritten ? .head : .contentEnd
        }
        return filled > 0 ? .bytes(filled) : .none
    }

    private mutating func readChunks(
        by decoder: ChunkedDecoder, into output: UnsafeMutableRawBufferPointer, _ input: inout Input<some ByteSource>
    ) -> Content {
        guard let base = output.baseAddress else { return .none }
        var decoder = decoder
        var filled = 0
        var outcome = ChunkedDecoder.Outcome.incomplete
        while filled < output.count, outcome == .incomplete {
            let room = UnsafeMutableRawBufferPointer(rebasing: output[filled...])
            let produced: Int
            if pendingStart < pending.count {
                let (bytes, start) = (pending, pendingStart)
                let result = bytes.withUnsafeBytes { bytes in
                    decoder.decode(
                        UnsafeRawBufferPointer(rebasing: bytes[start...].prefix(room.count)), to: base + filled)
                }
                consume(result.consumed)
                (produced, outcome) = (result.produced, result.outcome)
            } else {
                guard case .bytes(let count) = input.next(into: room) else { break }
                let received = UnsafeRawBufferPointer(rebasing: room.prefix(count))
                let result = decoder.decode(received, to: base + filled)
                // The decoded content never overwrites input that is not decoded yet.
                keep(UnsafeRawBufferPointer(rebasing: received[result.consumed...]))
                (produced, outcome) = (result.produced, result.outcome)
            }
            filled += produced
        }
        switch outcome {
        case .incomplete: place = .chunks(decoder)
        case .complete: place = .contentEnd
        // Content before the error is delivered first.
        case .refused(let refusal): place = .malformed(refusal)
        }
        return filled > 0 ? .bytes(filled) : .none
    }

    /// Stores received bytes until they are read.
    private mutating func keep(_ bytes: UnsafeRawBufferPointer) { (pending, pendingStart) = (Array(bytes), 0) }

    private mutating func consume(_ count: Int) {
        pendingStart += count
        if pendingStart == pending.count { (pending, pendingStart) = ([], 0) }
    }

    /// The source during one read.
    private struct Input<Source: ByteSource> {
        let source: Source
        /// The end of the input; `nil` while it is open.
        var end: Int?
        /// Whether the source has no more input now.
        var isDrained = false

        init(source: Source, end: Int?) { (self.source, self.end) = (source, end) }

        /// The result of a read without output.
        var last: Arrival { end.map { .end($0) } ?? .none }

        mutating func next(into buffer: UnsafeMutableRawBufferPointer) -> Arrival {
            if end != nil || isDrained { return last }
            let arrival = source.receive(into: buffer)
            switch arrival {
            // A stream socket that returns fewer bytes than requested has no more input.
            case .bytes(let count): isDrained = !source.isRecordwise && count < buffer.count
            case .none: isDrained = true
            case .end(let code): (end, isDrained) = (code, true)
            }
            return arrival
        }
    }
}

/// The input of a ``RequestReader``.
protocol ByteSource {
    /// Whether the source returns one record at a time, even if more input has arrived.
    var isRecordwise: Bool { get }
    /// Stores input in `buffer`, without waiting.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival
}
