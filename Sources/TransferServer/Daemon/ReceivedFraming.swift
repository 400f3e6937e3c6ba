import HTTPSemantics

/// Follows the framing of what a connection receives, and gives libmicrohttpd what it reads as it was meant.
///
/// By itself libmicrohttpd hides lines of a head or answers them with two heads, takes white space behind a value for a
/// part of it, a bare LF for the end of a line of chunks (RFC 9112 section 2.2), and in version 1.0.1 the end of a chunk
/// extension for content. So what it is about to read is looked at first. What means nothing is left out: chunk extensions,
/// white space behind a length or a coding. What is wrong is told to whoever serves the request, and where
/// libmicrohttpd's own refusal would come before ours, it is given something else to read.
///
/// Only what is well-formed is followed: after anything else the connection is ended anyway, and nothing more is said.
package struct ReceivedFraming {
    enum Place {
        /// Before a request, where empty lines may stand.
        case start
        case head
        case content(Int64)
        case chunkSize(Int64?)
        /// White space behind the size, where only an extension may follow.
        case chunkSpace(Int64)
        case chunkExtension(Int64, length: Int)
        case chunkSizeEnd(Int64)
        case chunk(Int64)
        case chunkEnd
        case trailer(isEmpty: Bool)
        /// What was received is not well-formed, or not understood.
        case lost
    }

    var place = Place.start
    /// As it was received.
    var previous: UInt8 = 0
    private var line = ReceivedLine()
    /// Where the line begins, if it does so in the bytes that are looked at.
    private var lineStart: Int?
    private var lines = 0
    private var length: UInt64?
    private var codings = 0
    private var isStrict = true

    /// Requests of which something has arrived.
    package private(set) var requests = 0
    /// The first fault, and the request that has it, counted from 1.
    package private(set) var fault: (request: Int, refusal: FramingRefusal)?

    static let (lineFeed, carriageReturn): (UInt8, UInt8) = (10, 13)

    package init() {}

    /// Takes bytes in the order of their arrival, before anybody else does.
    /// - Returns: how many of them are left, at the beginning of `bytes`.
    package mutating func receive(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
        var (next, kept) = (0, 0)
        lineStart = nil
        while next < bytes.count {
            switch place {
            case .lost:
                Self.move(bytes, from: next, count: bytes.count - next, to: &kept)
                return kept
            case .content(let rest):
                let count = min(rest, Int64(bytes.count - next))
                place = count == rest ? .start : .content(rest - count)
                Self.move(bytes, from: next, count: Int(count), to: &kept)
                next += Int(count)
            case .chunk(let rest) where rest > 0:
                let count = min(rest, Int64(bytes.count - next))
                place = .chunk(rest - count)
                Self.move(bytes, from: next, count: Int(count), to: &kept)
                next += Int(count)
            default:
                let byte = bytes[next]
                if let replacement = follow(byte, at: kept, in: bytes) {
                    bytes[kept] = replacement
                    kept += 1
                }
                previous = byte
                next += 1
            }
        }
        return kept
    }

    private static func move(
        _ bytes: UnsafeMutableRawBufferPointer, from start: Int, count: Int, to kept: inout Int
    ) {
        if start != kept, let base = bytes.baseAddress {
            (base + kept).copyMemory(from: base + start, byteCount: count)
        }
        kept += count
    }

    /// What is left of a byte, which would come to lie at `index`.
    private mutating func follow(
        _ byte: UInt8, at index: Int, in bytes: UnsafeMutableRawBufferPointer
    ) -> UInt8? {
        switch place {
        case .start:
            if byte == Self.carriageReturn || byte == Self.lineFeed { return byte }
            // No request begins with a control character, but TLS does.
            guard byte > 0x20 else {
                place = .lost
                return byte
            }
            requests += 1
            (length, codings, isStrict, lines, previous) = (nil, 0, true, 0, 0)
            place = .head
            beginLine(at: index)
            return followHead(byte, in: bytes)
        case .head:
            if lines > 0, previous == Self.lineFeed { beginLine(at: index) }
            return followHead(byte, in: bytes)
        case .content, .lost:
            return byte
        default:
            return followChunks(byte)
        }
    }

    mutating func fail(_ refusal: FramingRefusal) {
        if fault == nil { fault = (requests, refusal) }
        isStrict = false
    }

    // MARK: - Head

    private mutating func beginLine(at index: Int) {
        line = ReceivedLine()
        lineStart = index
    }

    private mutating func followHead(_ byte: UInt8, in bytes: UnsafeMutableRawBufferPointer) -> UInt8? {
        if byte == 0 || (previous == Self.carriageReturn && byte != Self.lineFeed) { fail(.malformedHead) }
        if byte == Self.lineFeed {
            endLine()
            return byte
        }
        // The first line is nobody's field.
        guard lines > 0 else { return byte }
        let (reaction, refusal) = byte == Self.carriageReturn ? line.end() : line.take(byte)
        guard let refusal else { return reaction }
        fail(refusal)
        guard line.hides(refusal) else { return reaction }
        guard let lineStart else { return line.substitute(for: byte) }
        // A name that means nothing to libmicrohttpd.
        bytes[lineStart] = UInt8(ascii: "X")
        line.isHidden = true
        return byte
    }

    private mutating func endLine() {
        if previous != Self.carriageReturn { fail(.malformedHead) }
        defer { lines += 1 }
        guard lines > 0 else { return }
        switch line.meaning {
        case .nothing: return endHead()
        case .length(let number):
            if length != nil && length != number { isStrict = false }
            length = number
        case .chunked: codings += 1
        case .field: break
        case .unknown: isStrict = false
        }
    }

    private mutating func endHead() {
        let count = length.map { Int64(exactly: $0) ?? .max }
        switch (isStrict, codings, count) {
        case (true, 0, let count): place = count ?? 0 == 0 ? .start : .content(count ?? 0)
        case (true, 1, nil): place = .chunkSize(nil)
        default: place = .lost
        }
    }
}
