/// Decodes the chunked transfer coding (RFC 9112 section 7.1) in place. Extensions and trailer fields are verified and
/// discarded.
package struct ChunkedDecoder: Sendable {
    package enum Outcome: Equatable, Sendable {
        /// All input was decoded, and more content follows.
        case incomplete
        /// The content and its trailer section are complete; input after them is not read.
        case complete
        /// Input from here on is malformed.
        case refused(FramingRefusal)
    }

    private enum Place: Sendable {
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
    package static let maxLineSize = 16 << 10

    private var place = Place.size
    /// While a size is read, its value so far; then the remaining bytes of the chunk.
    private var count: Int64 = 0
    /// The bytes of the current size line, or of the trailer section.
    private var lineSize = 0
    private var trailerLine: [UInt8] = []

    package init() {}

    /// Decodes `input` and moves the content to `output`. `output` may be the memory of `input`, or memory that starts
    /// before it.
    package mutating func decode(
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
            let size = input[start].hexDigitValue.map(Int.init), size > 0, start + size + 5 <= input.count,
            input[start + size + 3] == 0x0D, input[start + size + 4] == 0x0A
        else { return nil }
        return size
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
        if let digit = byte.hexDigitValue {
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
