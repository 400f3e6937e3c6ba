import HTTPSemantics

/// Follows the framing of what a connection receives, for the faults that libmicrohttpd hides or answers wrongly.
///
/// To a malformed Content-Length it gives an answer that has two heads, it takes white space behind the number for a fault,
/// which is none (RFC 9112 section 5), and a bare LF for the end of a line of chunks (RFC 9112 section 2.2). So what it is
/// about to read is looked at first. Where its own refusal would come before ours the line is made one that it does not
/// know; the fault is told to whoever serves the request.
///
/// Only what is well-formed is followed: after anything else the connection is ended anyway, and nothing more is said.
package struct ReceivedFraming {
    private enum Place {
        /// Before a request, where empty lines may stand.
        case start
        case head
        case content(Int64)
        case chunkSize(Int64?)
        case chunkExtension(Int64)
        case chunk(Int64)
        case chunkEnd
        case trailer(isEmpty: Bool)
        /// What was received is not well-formed, or not understood.
        case lost
    }

    private var place = Place.start
    private var previous: UInt8 = 0
    /// Of the head: how a line begins, without its LF, and how long it is.
    private var line: [UInt8] = []
    private var lineSize = 0
    private var lines = 0
    private var length: Int64?
    private var isChunked = false
    private var isStrict = true

    /// Requests of which something has arrived.
    package private(set) var requests = 0
    /// The first fault, and the request that has it, counted from 1.
    package private(set) var fault: (request: Int, refusal: FramingRefusal)?

    /// More of a line is not kept: what strangers send must not fill the memory.
    private static let keptOfLine = 256
    private static let (lineFeed, carriageReturn, space): (UInt8, UInt8, UInt8) = (10, 13, 32)

    package init() {}

    /// Looks at bytes in the order of their arrival, before anybody else does, and changes what has to be changed.
    package mutating func receive(_ bytes: UnsafeMutableRawBufferPointer) {
        var index = 0
        while index < bytes.count {
            switch place {
            case .lost:
                return
            case .start:
                let byte = bytes[index]
                if byte != Self.carriageReturn && byte != Self.lineFeed {
                    beginRequest(byte)
                } else {
                    index += 1
                }
            case .head:
                index = readLine(bytes, from: index)
            case .content(let rest):
                let count = min(rest, Int64(bytes.count - index))
                place = count == rest ? .start : .content(rest - count)
                index += Int(count)
            case .chunk(let rest) where rest > 0:
                let count = min(rest, Int64(bytes.count - index))
                place = .chunk(rest - count)
                index += Int(count)
            case .chunk, .chunkEnd, .chunkSize, .chunkExtension, .trailer:
                takeOfChunks(bytes[index])
                previous = bytes[index]
                index += 1
            }
        }
    }

    private mutating func fail(_ refusal: FramingRefusal) {
        if fault == nil { fault = (requests, refusal) }
    }

    // MARK: - Head

    private mutating func beginRequest(_ byte: UInt8) {
        // No request begins with a control character, but TLS does.
        guard byte > Self.space else {
            place = .lost
            return
        }
        requests += 1
        (length, isChunked, isStrict, lines) = (nil, false, true, 0)
        place = .head
    }

    /// Takes in a line of the head, or what there is of it, and returns where the rest begins.
    private mutating func readLine(_ bytes: UnsafeMutableRawBufferPointer, from start: Int) -> Int {
        let end = bytes[start...].firstIndex(of: Self.lineFeed)
        let beginsHere = lineSize == 0
        let piece = bytes[start..<(end ?? bytes.count)]
        line += piece.prefix(Self.keptOfLine - line.count)
        lineSize += piece.count
        previous = piece.last ?? previous
        guard let end else { return bytes.count }
        endLine(in: UnsafeMutableRawBufferPointer(rebasing: bytes[start..<end]), isWhole: beginsHere)
        line.removeAll(keepingCapacity: true)
        lineSize = 0
        previous = Self.lineFeed
        return end + 1
    }

    private mutating func endLine(in bytes: UnsafeMutableRawBufferPointer, isWhole: Bool) {
        lines += 1
        let endsWithReturn = previous == Self.carriageReturn
        if !endsWithReturn { isStrict = false }
        let size = lineSize - (endsWithReturn ? 1 : 0)
        if size == 0 { return endHead() }
        let text = line.prefix(size)
        guard lines > 1 else { return }
        guard let colon = text.firstIndex(of: 0x3a), !Self.isBlank(text[0]) else {
            isStrict = false
            return
        }
        let value = text[(colon + 1)...].drop(while: Self.isBlank)
        switch String(decoding: text[..<colon], as: UTF8.self).lowercased() {
        case "content-length":
            takeLength(size > text.count ? [] : value, in: bytes, isWhole: isWhole)
        case "transfer-encoding":
            isChunked = String(decoding: value, as: UTF8.self).lowercased() == "chunked" && !isChunked
            if !isChunked || size > text.count { isStrict = false }
        default: break
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == 9 }

    /// - Parameter isWhole: whether `bytes` hold all of the line, as far as it can be changed.
    private mutating func takeLength(_ value: ArraySlice<UInt8>, in bytes: UnsafeMutableRawBufferPointer, isWhole: Bool)
    {
        let digits = value.prefix { (0x30...0x39).contains($0) }
        let rest = value[digits.endIndex...]
        guard !digits.isEmpty, rest.allSatisfy(Self.isBlank) else {
            fail(.invalidContentLength)
            if isWhole { bytes[0] = UInt8(ascii: "X") }
            return
        }
        guard let number = UInt64(String(decoding: digits, as: UTF8.self)) else {
            fail(.contentLengthOverflow)
            if isWhole { bytes[0] = UInt8(ascii: "X") }
            return
        }
        if length != nil { isStrict = false }
        length = length ?? Int64(exactly: number) ?? .max
        guard isWhole, !rest.isEmpty else { return }
        // White space before the number is understood.
        for index in value.indices {
            bytes[index] = index < value.startIndex + rest.count ? Self.space : line[index - rest.count]
        }
    }

    private mutating func endHead() {
        switch (isStrict, isChunked, length) {
        case (true, true, nil): place = .chunkSize(nil)
        case (true, false, let length): place = length ?? 0 == 0 ? .start : .content(length ?? 0)
        default: place = .lost
        }
    }

    // MARK: - Chunks

    private mutating func takeOfChunks(_ byte: UInt8) {
        switch place {
        case .chunkSize(let size):
            if let digit = Character(Unicode.Scalar(byte)).hexDigitValue {
                let (product, overflows) = (size ?? 0).multipliedReportingOverflow(by: 16)
                place = overflows ? .lost : .chunkSize(product + Int64(digit))
            } else if let size {
                place = .chunkExtension(size)
                takeOfChunks(byte)
            } else {
                place = .lost
            }
        case .chunkExtension(let size):
            guard byte == Self.lineFeed else { return }
            requireReturn()
            place = size == 0 ? .trailer(isEmpty: true) : .chunk(size)
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
                requireReturn()
                place = isEmpty ? .start : .trailer(isEmpty: true)
            } else {
                place = .trailer(isEmpty: isEmpty && byte == Self.carriageReturn)
            }
        case .start, .head, .content, .lost:
            break
        }
    }

    private mutating func requireReturn() {
        if previous != Self.carriageReturn { fail(.bareLineFeed) }
    }
}
