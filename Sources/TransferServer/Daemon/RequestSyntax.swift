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

    /// Whether nothing of a request except empty lines has arrived.
    var isEmpty: Bool { !hasRequestLine && line.isEmpty }

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

/// Decodes the chunked transfer coding (RFC 9112 section 7.1) in place. Extensions and trailer fields are verified and
/// discarded.
struct ChunkedDecoder {
    enum Outcome: Equatable {
        /// All input was decoded, and more content follows.
        case incomplete
        /// The content and its trailer section are complete; input after them is not read.
        case complete
        /// Input from here on is malformed.
        case refused(FramingRefusal)
    }

    private enum Place {
        case size
        /// White space after the size; only an extension may follow.
        case space
        case chunkExtension
        case sizeLineFeed
        case data
        case dataCarriageReturn
        case dataLineFeed
        case trailer
        case trailerLineFeed
    }

    /// The maximum length in bytes of a chunk size with its extension, and of a trailer section.
    static let maxLineSize = 16 << 10

    private var place = Place.size
    /// While a size is read, its value so far; then the remaining bytes of the chunk.
    private var count: Int64 = 0
    /// The bytes of the current size line, or of the trailer section.
    private var lineSize = 0
    private var trailerLine: [UInt8] = []

    /// Decodes `input` and moves the content to `output`. `output` may be the memory of `input`, or memory that starts
    /// before it.
    mutating func decode(
        _ input: UnsafeRawBufferPointer, to output: UnsafeMutableRawPointer
    ) -> (consumed: Int, produced: Int, outcome: Outcome) {
        guard let start = input.baseAddress else { return (0, 0, .incomplete) }
        var (next, produced) = (0, 0)
        while next < input.count {
            switch place {
            case .data:
                let size = Int(min(count, Int64(input.count - next)))
                (output + produced).copyMemory(from: start + next, byteCount: size)
                (next, produced, count) = (next + size, produced + size, count - Int64(size))
                if count == 0 { place = .dataCarriageReturn }
            case .size where lineSize == 0:
                // Many small chunks are the most expensive content, so they have a fast path.
                if let size = Self.smallChunk(input, at: next) {
                    for index in 0..<size {
                        output.storeBytes(of: input[next + 3 + index], toByteOffset: produced + index, as: UInt8.self)
                    }
                    (next, produced) = (next + size + 5, produced + size)
                } else {
                    fallthrough
                }
            default:
                let outcome = read(input[next])
                if case .refused = outcome { return (next, produced, outcome) }
                next += 1
                if case .complete = outcome { return (next, produced, outcome) }
            }
        }
        return (next, produced, .incomplete)
    }

    /// The size of a chunk if it has one digit, is not 0 and has no extension, and if the complete chunk has arrived.
    private static func smallChunk(_ input: UnsafeRawBufferPointer, at start: Int) -> Int? {
        guard start + 6 <= input.count, input[start + 1] == 0x0D, input[start + 2] == 0x0A,
            let size = digit(input[start]), size > 0, start + size + 5 <= input.count,
            input[start + size + 3] == 0x0D, input[start + size + 4] == 0x0A
        else { return nil }
        return size
    }

    private static func digit(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46: Int(byte) - 0x41 + 10
        case 0x61...0x66: Int(byte) - 0x61 + 10
        default: nil
        }
    }

    /// Reads a byte that is not content.
    private mutating func read(_ byte: UInt8) -> Outcome {
        switch place {
        case .size: return readSize(byte)
        case .space:
            lineSize += 1
            switch byte {
            case 0x20, 0x09: break
            case 0x3B: place = .chunkExtension
            default: return .refused(.malformedChunk)
            }
            if lineSize > Self.maxLineSize { return .refused(.malformedChunk) }
        case .chunkExtension:
            lineSize += 1
            if byte == 0x0D || byte == 0x0A { return endSize(byte) }
            guard lineSize <= Self.maxLineSize, byte == 0x09 || (byte >= 0x20 && byte != 0x7F) else {
                return .refused(.malformedChunk)
            }
        case .sizeLineFeed:
            guard byte == 0x0A else { return .refused(.malformedChunk) }
            lineSize = 0
            place = count == 0 ? .trailer : .data
        case .dataCarriageReturn:
            guard byte == 0x0D else { return .refused(byte == 0x0A ? .bareLineFeed : .malformedChunk) }
            place = .dataLineFeed
        case .dataLineFeed:
            guard byte == 0x0A else { return .refused(.malformedChunk) }
            place = .size
        case .trailer, .trailerLineFeed: return readTrailer(byte)
        case .data: break
        }
        return .incomplete
    }

    private mutating func readSize(_ byte: UInt8) -> Outcome {
        if let digit = Self.digit(byte) {
            let (product, overflows) = (lineSize == 0 ? 0 : count).multipliedReportingOverflow(by: 16)
            lineSize += 1
            guard !overflows, lineSize <= Self.maxLineSize else { return .refused(.malformedChunk) }
            count = product + Int64(digit)
            return .incomplete
        }
        // A size needs at least one digit.
        guard lineSize > 0 else { return .refused(.malformedChunk) }
        return endSize(byte)
    }

    /// Reads a byte after the size or its extension.
    private mutating func endSize(_ byte: UInt8) -> Outcome {
        switch byte {
        case 0x0D: place = .sizeLineFeed
        case 0x0A: return .refused(.bareLineFeed)
        case 0x20, 0x09: place = .space
        case 0x3B: place = .chunkExtension
        default: return .refused(.malformedChunk)
        }
        return .incomplete
    }

    private mutating func readTrailer(_ byte: UInt8) -> Outcome {
        lineSize += 1
        if lineSize > Self.maxLineSize { return .refused(.trailerTooLarge) }
        if case .trailerLineFeed = place {
            guard byte == 0x0A else { return .refused(.malformedTrailer) }
            if trailerLine.isEmpty { return .complete }
            guard Self.isField(trailerLine) else { return .refused(.malformedTrailer) }
            trailerLine = []
            place = .trailer
            return .incomplete
        }
        switch byte {
        case 0x0D: place = .trailerLineFeed
        case 0x0A: return .refused(.bareLineFeed)
        case 0: return .refused(.malformedTrailer)
        default: trailerLine.append(byte)
        }
        return .incomplete
    }

    private static func isField(_ line: [UInt8]) -> Bool {
        guard let colon = line.firstIndex(of: 0x3A) else { return false }
        return Fields.isValidName(String(decoding: line[..<colon], as: UTF8.self))
            && Fields.isValidValue(String(decoding: line[(colon + 1)...], as: UTF8.self))
    }
}
