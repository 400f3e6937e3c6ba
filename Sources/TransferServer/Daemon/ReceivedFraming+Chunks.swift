import HTTPSemantics

/// The chunked coding (RFC 9112 section 7.1).
extension ReceivedFraming {
    /// Bytes of an extension: who sends more of them than there is room for a head means no good.
    private static let longestExtension = 16 << 10
    /// In the place of what was left out already: libmicrohttpd refuses it.
    private static let noSize = UInt8(ascii: "x")

    mutating func followChunks(_ byte: UInt8) -> UInt8? {
        switch place {
        case .chunkSize(let size):
            if let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 {
                let (product, overflows) = (size ?? 0).multipliedReportingOverflow(by: 16)
                place = overflows ? .lost : .chunkSize(product + Int64(digit))
            } else if let size {
                return endSize(size, byte)
            } else {
                place = .lost
            }
        case .chunkSpace(let size):
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"): return nil
            case UInt8(ascii: ";"):
                place = .chunkExtension(size, length: 0)
                return nil
            default:
                place = .lost
                return Self.noSize
            }
        case .chunkExtension(let size, let length):
            if byte == Self.carriageReturn || byte == Self.lineFeed { return endSize(size, byte) }
            guard length < Self.longestExtension else {
                place = .lost
                return Self.noSize
            }
            place = .chunkExtension(size, length: length + 1)
            return nil
        case .chunkSizeEnd(let size):
            place = .lost
            if byte == Self.lineFeed { beginChunk(size) }
        case .chunk:
            place = byte == Self.carriageReturn ? .chunkEnd : .lost
            if byte == Self.lineFeed {
                fail(.bareLineFeed)
                place = .chunkSize(nil)
            }
        case .chunkEnd:
            place = byte == Self.lineFeed ? .chunkSize(nil) : .lost
        case .trailer(let isEmpty):
            if byte == Self.lineFeed {
                if previous != Self.carriageReturn { fail(.bareLineFeed) }
                place = isEmpty ? .start : .trailer(isEmpty: true)
            } else {
                place = .trailer(isEmpty: isEmpty && byte == Self.carriageReturn)
            }
        case .start, .head, .content, .lost:
            break
        }
        return byte
    }

    private mutating func endSize(_ size: Int64, _ byte: UInt8) -> UInt8? {
        switch byte {
        case Self.carriageReturn: place = .chunkSizeEnd(size)
        case Self.lineFeed:
            fail(.bareLineFeed)
            beginChunk(size)
        case UInt8(ascii: " "), UInt8(ascii: "\t"):
            place = .chunkSpace(size)
            return nil
        case UInt8(ascii: ";"):
            place = .chunkExtension(size, length: 0)
            return nil
        default: place = .lost
        }
        return byte
    }

    private mutating func beginChunk(_ size: Int64) { place = size == 0 ? .trailer(isEmpty: true) : .chunk(size) }
}
