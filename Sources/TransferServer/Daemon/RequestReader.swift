import HTTPSemantics

/// Parses the input of a connection (RFC 9112) and writes it in a normalized form, which is the only input of
/// libmicrohttpd.
///
/// The parser of libmicrohttpd is lax, differs between versions and from other recipients, and sends its own pages for
/// some malformed requests. So libmicrohttpd receives one request at a time: a head that this type has written, then
/// the content. Content with a declared length is unchanged; chunked content is passed as one chunk for each call.
/// Therefore this type and libmicrohttpd always agree about the end of a request.
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

    private enum Place {
        case head
        case content(Int64)
        case chunks
        /// The content is malformed, and libmicrohttpd is not notified of it yet.
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
    /// The lengths of the size line and of the end of a chunk, and the last chunk itself.
    private static let (chunkPrefix, chunkSuffix, lastChunk) = (10, 2, Array("0\r\n\r\n".utf8))

    private var place = Place.head
    /// The declared length of the content of the last request.
    private var contentLength: Int64 = 0
    private var head = HeadReader()
    private var decoder = ChunkedDecoder()
    /// Bytes that were received together with the end of a head or of a message, and that follow this end.
    private var pending: [UInt8] = []
    private var pendingStart = 0
    private var end: Int?
    /// The number of discarded bytes.
    private var discarded: Int64 = 0
    /// Whether the source may have more input that can be read without waiting.
    private(set) var mayHaveMore = false

    /// The request whose substitute was written last, until ``takeRequest()``.
    private var request: ReceivedRequest?
    /// Why the content of the last request is rejected; `nil` if the content so far is valid.
    private(set) var contentRefusal: FramingRefusal?

    /// Whether a read would return bytes or the end of the input, even if the socket has no input.
    var hasInput: Bool { pendingStart < pending.count || end != nil || isMalformed || mayHaveMore }

    private var isMalformed: Bool { if case .malformed = place { true } else { false } }

    /// Returns the request whose substitute was written last. Each request is returned only once; nil if there is no
    /// new request.
    mutating func takeRequest() -> ReceivedRequest? {
        defer { request = nil }
        return request
    }

    /// Receives the remaining content of the last request, if it has a declared length and is short. The next reads
    /// return this content. Waits only if a part of the content has arrived: other clients may wait for a response
    /// before they send content.
    /// - Parameters:
    ///   - limit: the maximum number of missing bytes.
    ///   - awaitInput: waits for input; returns false if there is none in time.
    /// - Returns: whether all content has arrived.
    mutating func receiveContent(
        atMost limit: Int, from source: some ByteSource, _ awaitInput: () -> Bool
    ) -> Bool {
        guard case .content(let remaining) = place else { if case .head = place { return true } else { return false } }
        guard remaining <= limit, end == nil else { return false }
        let declared = contentLength
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
                let hasPart = remaining < declared || pendingStart < pending.count
                if !hasPart || !awaitInput() { return false }
            case .end(let code):
                end = code
                return false
            }
        }
        mayHaveMore = source.isRecordwise
        return true
    }

    /// Discards all further input.
    mutating func discard() {
        place = .discarding
        (pending, pendingStart) = ([], 0)
    }

    /// Fills `output` with normalized input for libmicrohttpd.
    mutating func read(into output: UnsafeMutableRawBufferPointer, from source: some ByteSource) -> Arrival {
        var input = Input(source: source, end: end)
        defer {
            end = input.end
            mayHaveMore = source.isRecordwise && !input.isDrained
        }
        if case .head = place { return readHead(into: output, &input) }
        return readContent(into: output, from: 0, &input)
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
            case .complete: return begin(ReceivedRequest(head.head), into: output, &input)
            case .refused(let refusal):
                return begin(ReceivedRequest(head.head, refused: refusal), into: output, &input)
            }
        }
    }

    private mutating func begin(
        _ request: ReceivedRequest, into output: UnsafeMutableRawBufferPointer, _ input: inout Input<some ByteSource>
    ) -> Arrival {
        self.request = request
        contentRefusal = nil
        head = HeadReader()
        switch request.evaluation {
        case .accepted(.none, _), .accepted(.length(0), _): place = .head
        case .accepted(.length(let length), _): (place, contentLength) = (.content(length), length)
        case .accepted(.chunked, _): (place, decoder) = (.chunks, ChunkedDecoder())
        case .refused: discard()
        }
        let substitute = request.substitute
        guard substitute.count <= output.count else { return endForLackOfSpace() }
        output.copyBytes(from: substitute)
        if case .head = place { return .bytes(substitute.count) }
        // The head is followed by content that has already arrived.
        return readContent(into: output, from: substitute.count, &input)
    }

    // MARK: - Content

    /// - Parameter written: the number of bytes of `output` that are already filled.
    private mutating func readContent(
        into output: UnsafeMutableRawBufferPointer, from written: Int, _ input: inout Input<some ByteSource>
    ) -> Arrival {
        switch place {
        case .head: return written > 0 ? .bytes(written) : .none
        case .content(let length): return readBytes(of: length, into: output, from: written, &input)
        case .chunks: return readChunks(into: output, from: written, &input)
        case .malformed(let refusal):
            guard written == 0 else { return .bytes(written) }
            // Any content makes libmicrohttpd call the server, which then finds `contentRefusal`.
            let signal = Array("1\r\n?\r\n".utf8)
            guard signal.count <= output.count else { return endForLackOfSpace() }
            contentRefusal = refusal
            discard()
            output.copyBytes(from: signal)
            return .bytes(signal.count)
        case .discarding:
            guard written == 0 else { return .bytes(written) }
            switch input.next(into: output) {
            case .bytes(let count):
                discarded += Int64(count)
                if discarded >= Self.maxDiscarded { input.end = 0 }
            case .none, .end: break
            }
            return input.last
        }
    }

    private mutating func readBytes(
        of length: Int64, into output: UnsafeMutableRawBufferPointer, from first: Int,
        _ input: inout Input<some ByteSource>
    ) -> Arrival {
        var (written, remaining) = (first, length)
        while remaining > 0, written < output.count {
            let room = UnsafeMutableRawBufferPointer(
                rebasing: output[written...].prefix(Int(min(remaining, Int64(output.count - written)))))
            let count: Int
            if pendingStart < pending.count {
                count = min(room.count, pending.count - pendingStart)
                room.copyBytes(from: pending[pendingStart..<(pendingStart + count)])
                consume(count)
            } else {
                guard case .bytes(let received) = input.next(into: room) else { break }
                count = received
            }
            (written, remaining) = (written + count, remaining - Int64(count))
        }
        place = remaining == 0 ? .head : .content(remaining)
        return written > 0 ? .bytes(written) : input.last
    }

    private mutating func readChunks(
        into output: UnsafeMutableRawBufferPointer, from start: Int, _ input: inout Input<some ByteSource>
    ) -> Arrival {
        let first = start + Self.chunkPrefix
        let limit = output.count - Self.chunkSuffix - Self.lastChunk.count
        guard let base = output.baseAddress, first < limit else {
            return start > 0 ? .bytes(start) : endForLackOfSpace()
        }
        var filled = first
        var outcome = ChunkedDecoder.Outcome.incomplete
        while filled < limit, outcome == .incomplete {
            let room = UnsafeMutableRawBufferPointer(rebasing: output[filled..<limit])
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
        var written = start
        if filled > first {
            Self.writeSize(filled - first, at: base + start)
            output.storeBytes(of: 0x0D, toByteOffset: filled, as: UInt8.self)
            output.storeBytes(of: 0x0A, toByteOffset: filled + 1, as: UInt8.self)
            written = filled + Self.chunkSuffix
        }
        switch outcome {
        case .incomplete: break
        case .complete:
            place = .head
            UnsafeMutableRawBufferPointer(rebasing: output[written...]).copyBytes(from: Self.lastChunk)
            written += Self.lastChunk.count
        case .refused(let refusal):
            // Content before the error is delivered first.
            place = .malformed(refusal)
            return readContent(into: output, from: written, &input)
        }
        return written > 0 ? .bytes(written) : input.last
    }

    /// Writes the size line of a chunk: eight hexadecimal digits, CR and LF.
    private static func writeSize(_ size: Int, at start: UnsafeMutableRawPointer) {
        for index in 0..<8 {
            let digit = UInt8(truncatingIfNeeded: size >> (28 - 4 * index)) & 0xF
            start.storeBytes(of: digit < 10 ? 0x30 + digit : 0x57 + digit, toByteOffset: index, as: UInt8.self)
        }
        start.storeBytes(of: 0x0D, toByteOffset: 8, as: UInt8.self)
        start.storeBytes(of: 0x0A, toByteOffset: 9, as: UInt8.self)
    }

    /// Ends the input, because `output` is too small. This should not occur: libmicrohttpd's buffer is large enough.
    private mutating func endForLackOfSpace() -> Arrival {
        discard()
        return .end(0)
    }

    /// Stores received bytes for the next read.
    private mutating func keep(_ bytes: UnsafeRawBufferPointer) { (pending, pendingStart) = (Array(bytes), 0) }

    private mutating func consume(_ count: Int) {
        pendingStart += count
        if pendingStart == pending.count { (pending, pendingStart) = ([], 0) }
    }

    /// The source during one read.
    private struct Input<Source: ByteSource> {
        let source: Source
        /// The end of the input; nil while it is open.
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
