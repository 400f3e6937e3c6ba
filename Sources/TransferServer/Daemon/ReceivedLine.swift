import HTTPSemantics

/// A line of a request's head as it is received, without the request line.
struct ReceivedLine {
    enum Meaning: Equatable {
        /// It is empty.
        case nothing
        case field
        case length(UInt64)
        /// `Transfer-Encoding: chunked`
        case chunked
        /// It is malformed, or nobody needs to know.
        case unknown
    }

    private enum Kind { case other, length, coding, expectation }

    /// Lower-cased; more than the longest of interest is not kept.
    private var name: [UInt8] = []
    private var isName = true
    private var kind = Kind.other
    /// Of a coding or an expectation, lower-cased and without white space.
    private var value: [UInt8] = []
    private var number: UInt64?
    /// Whether white space was left out behind the value.
    private var hasEnded = false
    private var isBroken = false
    /// Whether its name is no longer what it was.
    var isHidden = false

    private static let keptOfName = 20
    private static let keptOfValue = 200

    /// Takes a byte that is neither CR nor LF.
    /// - Returns: what is left of it, and what is wrong with it.
    mutating func take(_ byte: UInt8) -> (UInt8?, FramingRefusal?) {
        if isBroken { return (kind == .length && !isHidden ? nil : byte, nil) }
        return isName ? takeName(byte) : takeValue(byte)
    }

    /// Takes the CR at the end.
    mutating func end() -> (UInt8?, FramingRefusal?) {
        if isBroken { return (13, nil) }
        if isName { return name.isEmpty ? (13, nil) : (13, broken(.malformedHead)) }
        switch kind {
        case .length where number == nil: return (13, broken(.invalidContentLength))
        case .coding:
            do throws(FramingRefusal) {
                try MessageFraming.checkCodings([String(decoding: value, as: UTF8.self)])
                return (13, nil)
            } catch {
                return (13, broken(error))
            }
        default: return (13, nil)
        }
    }

    var meaning: Meaning {
        if isBroken { return .unknown }
        if isName { return name.isEmpty ? .nothing : .unknown }
        switch kind {
        case .length: return number.map { .length($0) } ?? .unknown
        case .coding: return .chunked
        case .other, .expectation: return .field
        }
    }

    /// Whether libmicrohttpd would answer before us if it could read the line.
    func hides(_ refusal: FramingRefusal) -> Bool {
        !isHidden && refusal != .malformedHead && (kind == .length || kind == .coding)
    }

    /// What takes the place of a byte where the beginning of the line has gone out: libmicrohttpd gets some length.
    mutating func substitute(for byte: UInt8) -> UInt8? {
        guard kind == .length else { return byte }
        defer { number = number ?? 0 }
        return number == nil ? UInt8(ascii: "0") : nil
    }

    private mutating func broken(_ refusal: FramingRefusal) -> FramingRefusal {
        isBroken = true
        return refusal
    }

    private mutating func takeName(_ byte: UInt8) -> (UInt8?, FramingRefusal?) {
        if byte == UInt8(ascii: ":") {
            isName = false
            switch name {
            case []: return (byte, broken(.malformedHead))
            case Array("content-length".utf8): kind = .length
            case Array("transfer-encoding".utf8): kind = .coding
            case Array("expect".utf8): kind = .expectation
            default: break
            }
            return (byte, nil)
        }
        // Folded.
        if name.isEmpty && Self.isBlank(byte) { return (byte, broken(.malformedHead)) }
        if name.count < Self.keptOfName { name.append(Self.lowered(byte)) }
        return (byte, nil)
    }

    private mutating func takeValue(_ byte: UInt8) -> (UInt8?, FramingRefusal?) {
        switch kind {
        case .other: return (byte, nil)
        case .length: return takeLength(byte)
        case .coding, .expectation: return takeToken(byte)
        }
    }

    private mutating func takeLength(_ byte: UInt8) -> (UInt8?, FramingRefusal?) {
        if Self.isBlank(byte) {
            hasEnded = number != nil
            return (hasEnded ? nil : byte, nil)
        }
        guard (0x30...0x39).contains(byte), !hasEnded else { return (byte, broken(.invalidContentLength)) }
        let (product, overflowsProduct) = (number ?? 0).multipliedReportingOverflow(by: 10)
        let (sum, overflowsSum) = product.addingReportingOverflow(UInt64(byte - 0x30))
        if overflowsProduct || overflowsSum { return (byte, broken(.contentLengthOverflow)) }
        number = sum
        return (byte, nil)
    }

    /// White space behind a value says nothing; within one it does.
    private mutating func takeToken(_ byte: UInt8) -> (UInt8?, FramingRefusal?) {
        if Self.isBlank(byte) {
            hasEnded = !value.isEmpty
            return (hasEnded ? nil : byte, nil)
        }
        let isSeparator = byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";")
        if hasEnded, !isSeparator, let last = value.last, last != UInt8(ascii: ","), last != UInt8(ascii: ";") {
            return (byte, broken(kind == .coding ? .invalidTransferEncoding : .malformedHead))
        }
        hasEnded = false
        guard value.count < Self.keptOfValue else {
            return (byte, kind == .coding ? broken(.invalidTransferEncoding) : nil)
        }
        value.append(Self.lowered(byte))
        return (byte, nil)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 9 }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
