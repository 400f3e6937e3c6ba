extension Parser {
    /// RFC 9651 §4.2.3.1
    mutating func bareItem() throws(ParseFailure) -> BareItem {
        guard let first = current else { throw failure(.unexpectedEnd) }
        switch first {
        case .minus: return try number()
        case .quote: return .string(try string())
        case .colon: return .byteSequence(try byteSequence())
        case .questionMark: return .boolean(try boolean())
        case .at: return .date(try date())
        case .percent: return .displayString(try displayString())
        case _ where first.isDigit: return try number()
        case _ where first.startsToken: return .token(text(while: \.continuesToken))
        default: throw failure(.invalidItem)
        }
    }

    /// RFC 9651 §4.2.4
    private mutating func number() throws(ParseFailure) -> BareItem {
        let sign = consume(.minus) ? -1 : 1
        guard let first = current else { throw failure(.unexpectedEnd) }
        guard first.isDigit else { throw failure(.invalidNumber) }
        let whole = try digits(atMost: 15)
        guard current == .point else { return .integer(sign * whole.value) }
        guard whole.count <= 12 else { throw failure(.numberTooLong) }
        position += 1
        var fraction = try digits(atMost: 3, else: .invalidNumber)
        guard fraction.count > 0 else { throw failure(.invalidNumber) }
        while fraction.count < 3 {
            fraction.value *= 10
            fraction.count += 1
        }
        guard let decimal = Decimal(thousandths: sign * (whole.value * 1000 + fraction.value)) else {
            throw failure(.numberTooLong)
        }
        return .decimal(decimal)
    }

    /// Parses digits as a number. `limit` is so small that the number cannot overflow.
    private mutating func digits(
        atMost limit: Int, else reason: ParseFailure.Reason = .numberTooLong
    ) throws(ParseFailure) -> (value: Int, count: Int) {
        var value = 0
        var count = 0
        while let byte = current, byte.isDigit {
            guard count < limit else { throw failure(reason) }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
            count += 1
            position += 1
        }
        return (value, count)
    }

    /// RFC 9651 §4.2.5
    private mutating func string() throws(ParseFailure) -> String {
        position += 1
        var content: [UInt8] = []
        while let byte = current {
            switch byte {
            case .quote:
                position += 1
                return String(decoding: content, as: UTF8.self)
            case .backslash:
                position += 1
                guard let escaped = current else { throw failure(.unexpectedEnd) }
                guard escaped == .quote || escaped == .backslash else { throw failure(.invalidString) }
                content.append(escaped)
            case _ where byte.isPrintable:
                content.append(byte)
            default:
                throw failure(.invalidString)
            }
            position += 1
        }
        throw failure(.unexpectedEnd)
    }

    /// RFC 9651 §4.2.7
    private mutating func byteSequence() throws(ParseFailure) -> [UInt8] {
        position += 1
        let start = position
        guard let end = bytes[start...].firstIndex(of: .colon) else { throw failure(.unexpectedEnd) }
        guard let content = Base64.decode(bytes[start..<end]) else { throw failure(.invalidByteSequence) }
        position = end + 1
        return content
    }

    /// RFC 9651 §4.2.8
    private mutating func boolean() throws(ParseFailure) -> Bool {
        position += 1
        guard current != nil else { throw failure(.unexpectedEnd) }
        if consume(UInt8(ascii: "1")) { return true }
        if consume(UInt8(ascii: "0")) { return false }
        throw failure(.invalidBoolean)
    }

    /// RFC 9651 §4.2.9
    private mutating func date() throws(ParseFailure) -> Int {
        position += 1
        guard current != nil else { throw failure(.unexpectedEnd) }
        guard case .integer(let seconds) = try number() else { throw failure(.invalidDate) }
        return seconds
    }

    /// RFC 9651 §4.2.10
    private mutating func displayString() throws(ParseFailure) -> String {
        let start = position
        position += 1
        guard consume(.quote) else { throw failure(current == nil ? .unexpectedEnd : .invalidDisplayString) }
        var content: [UInt8] = []
        while let byte = current {
            switch byte {
            case .quote:
                guard let text = String(validating: content, as: UTF8.self) else {
                    throw ParseFailure(offset: start, reason: .invalidDisplayString)
                }
                position += 1
                return text
            case .percent:
                position += 1
                let high = try hexDigit()
                content.append(high << 4 | (try hexDigit()))
            case _ where byte.isPrintable:
                content.append(byte)
                position += 1
            default:
                throw failure(.invalidDisplayString)
            }
        }
        throw failure(.unexpectedEnd)
    }

    private mutating func hexDigit() throws(ParseFailure) -> UInt8 {
        guard let byte = current else { throw failure(.unexpectedEnd) }
        guard let value = byte.lowercaseHexValue else { throw failure(.invalidDisplayString) }
        position += 1
        return value
    }
}
