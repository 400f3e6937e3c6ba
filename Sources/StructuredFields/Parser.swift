/// The parsing algorithms of RFC 9651 section 4.2 over one combined field value.
///
/// It reads every byte a bounded number of times and does not recurse, because Inner Lists cannot be nested.
struct Parser {
    let bytes: [UInt8]
    var position = 0

    /// Copies the value and skips spaces at its start.
    init(_ source: some Collection<UInt8>) throws(ParseFailure) {
        bytes = Array(source)
        if let offset = bytes.firstIndex(where: { $0 > 0x7F }) {
            throw ParseFailure(offset: offset, reason: .nonASCII)
        }
        skipSpaces()
    }

    /// Throws unless only spaces follow the value.
    mutating func finish() throws(ParseFailure) {
        skipSpaces()
        if position < bytes.count { throw failure(.trailingCharacters) }
    }

    /// RFC 9651 section 4.2.1
    mutating func list() throws(ParseFailure) -> List {
        var members: [Member] = []
        while position < bytes.count {
            members.append(try member())
            try separator()
        }
        return List(members)
    }

    /// RFC 9651 section 4.2.2
    mutating func dictionary() throws(ParseFailure) -> OrderedDictionary {
        var dictionary = OrderedDictionary()
        while position < bytes.count {
            let key = try key()
            if consume(.equals) {
                dictionary[key] = try member()
            } else {
                dictionary[key] = .item(Item(.boolean(true), parameters: try parameters()))
            }
            try separator()
        }
        return dictionary
    }

    /// RFC 9651 section 4.2.3
    mutating func item() throws(ParseFailure) -> Item {
        let value = try bareItem()
        return Item(value, parameters: try parameters())
    }

    /// RFC 9651 section 4.2.1.1
    private mutating func member() throws(ParseFailure) -> Member {
        if current == .openParenthesis { return .innerList(try innerList()) }
        return .item(try item())
    }

    /// RFC 9651 section 4.2.1.2
    private mutating func innerList() throws(ParseFailure) -> InnerList {
        position += 1
        var items: [Item] = []
        while true {
            skipSpaces()
            if consume(.closeParenthesis) { return InnerList(items, parameters: try parameters()) }
            items.append(try item())
            guard let next = current else { throw failure(.unexpectedEnd) }
            guard next == .space || next == .closeParenthesis else { throw failure(.invalidInnerList) }
        }
    }

    /// RFC 9651 section 4.2.3.2
    private mutating func parameters() throws(ParseFailure) -> Parameters {
        var parameters = Parameters()
        while consume(.semicolon) {
            skipSpaces()
            let key = try key()
            parameters[key] = consume(.equals) ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    /// RFC 9651 section 4.2.3.3
    private mutating func key() throws(ParseFailure) -> String {
        guard let first = current else { throw failure(.unexpectedEnd) }
        guard first.isKeyStart else { throw failure(.invalidKey) }
        return text(while: \.isKeyCharacter)
    }

    /// Parses the separator between two members of a List or Dictionary, or the end after the last one.
    private mutating func separator() throws(ParseFailure) {
        skipOptionalWhitespace()
        guard position < bytes.count else { return }
        let comma = position
        guard consume(.comma) else { throw failure(.missingComma) }
        skipOptionalWhitespace()
        if position == bytes.count { throw ParseFailure(offset: comma, reason: .trailingComma) }
    }
}

extension Parser {
    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    func failure(_ reason: ParseFailure.Reason) -> ParseFailure {
        ParseFailure(offset: position, reason: reason)
    }

    /// Consumes `byte` if it is next, and returns whether it was.
    mutating func consume(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    /// Consumes the longest sequence of bytes for which `belongs` returns true.
    mutating func text(while belongs: (UInt8) -> Bool) -> String {
        let start = position
        while let byte = current, belongs(byte) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func skipSpaces() {
        while current == .space { position += 1 }
    }

    private mutating func skipOptionalWhitespace() {
        while current == .space || current == .tab { position += 1 }
    }
}

/// The reason why a field value is not a structured field of the expected type (RFC 9651 section 4.2).
///
/// Such a field must be ignored entirely.
package struct ParseFailure: Error, Hashable, Sendable {
    /// The kind of syntax error.
    package enum Reason: String, Hashable, Sendable {
        /// A byte above 0x7F; structured fields are ASCII.
        case nonASCII
        /// The value ended before it was complete.
        case unexpectedEnd
        /// There are characters after a complete value.
        case trailingCharacters
        /// A List or Dictionary ends in a comma.
        case trailingComma
        /// Two members are not separated by a comma.
        case missingComma
        /// No key starts here (RFC 9651 section 3.1.2).
        case invalidKey
        /// No Item or Inner List starts here.
        case invalidItem
        /// The items of an Inner List are not separated by spaces (RFC 9651 section 3.1.1).
        case invalidInnerList
        /// A sign without digits, or a Decimal that does not have one to three fractional digits (RFC 9651 section
        /// 3.3.1 and section 3.3.2).
        case invalidNumber
        /// An Integer of more than 15 digits, or a Decimal with more than 12 before the point.
        case numberTooLong
        /// A character or escape that a String does not allow (RFC 9651 section 3.3.3).
        case invalidString
        /// Not base64 (RFC 9651 section 3.3.5).
        case invalidByteSequence
        /// Neither `?0` nor `?1` (RFC 9651 section 3.3.6).
        case invalidBoolean
        /// A Date with a fraction (RFC 9651 section 3.3.7).
        case invalidDate
        /// A bad escape in a Display String, or escapes that are not UTF-8 (RFC 9651 section 3.3.8).
        case invalidDisplayString
    }

    /// The position of the error, in bytes from the start of the combined field value.
    package var offset: Int
    package var reason: Reason

    package init(offset: Int, reason: Reason) {
        self.offset = offset
        self.reason = reason
    }
}

extension ParseFailure: CustomStringConvertible {
    package var description: String { "\(reason.rawValue) at byte \(offset)" }
}

extension Parser {
    /// RFC 9651 section 4.2.3.1
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
        case _ where first.isTokenStart: return .token(text(while: \.isTokenCharacter))
        default: throw failure(.invalidItem)
        }
    }

    /// RFC 9651 section 4.2.4
    private mutating func number() throws(ParseFailure) -> BareItem {
        let sign = consume(.minus) ? -1 : 1
        guard let first = current else { throw failure(.unexpectedEnd) }
        guard first.isDigit else { throw failure(.invalidNumber) }
        let integer = try digits(atMost: 15)
        guard current == .point else { return .integer(sign * integer.value) }
        guard integer.count <= 12 else { throw failure(.numberTooLong) }
        position += 1
        var fraction = try digits(atMost: 3, else: .invalidNumber)
        guard fraction.count > 0 else { throw failure(.invalidNumber) }
        while fraction.count < 3 {
            fraction.value *= 10
            fraction.count += 1
        }
        guard let decimal = Decimal(thousandths: sign * (integer.value * 1000 + fraction.value)) else {
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

    /// RFC 9651 section 4.2.5
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

    /// RFC 9651 section 4.2.7
    private mutating func byteSequence() throws(ParseFailure) -> [UInt8] {
        position += 1
        let start = position
        guard let end = bytes[start...].firstIndex(of: .colon) else { throw failure(.unexpectedEnd) }
        guard let content = Base64.decode(bytes[start..<end]) else { throw failure(.invalidByteSequence) }
        position = end + 1
        return content
    }

    /// RFC 9651 section 4.2.8
    private mutating func boolean() throws(ParseFailure) -> Bool {
        position += 1
        guard current != nil else { throw failure(.unexpectedEnd) }
        if consume(UInt8(ascii: "1")) { return true }
        if consume(UInt8(ascii: "0")) { return false }
        throw failure(.invalidBoolean)
    }

    /// RFC 9651 section 4.2.9
    private mutating func date() throws(ParseFailure) -> Int {
        position += 1
        guard current != nil else { throw failure(.unexpectedEnd) }
        guard case .integer(let seconds) = try number() else { throw failure(.invalidDate) }
        return seconds
    }

    /// RFC 9651 section 4.2.10
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

// The character classes of RFC 9651, and those of the RFC 9110 rules that RFC 9651 uses.
extension UInt8 {
    static let tab = UInt8(ascii: "\t")
    static let space = UInt8(ascii: " ")
    static let quote = UInt8(ascii: "\"")
    static let percent = UInt8(ascii: "%")
    static let openParenthesis = UInt8(ascii: "(")
    static let closeParenthesis = UInt8(ascii: ")")
    static let asterisk = UInt8(ascii: "*")
    static let comma = UInt8(ascii: ",")
    static let minus = UInt8(ascii: "-")
    static let point = UInt8(ascii: ".")
    static let colon = UInt8(ascii: ":")
    static let semicolon = UInt8(ascii: ";")
    static let equals = UInt8(ascii: "=")
    static let questionMark = UInt8(ascii: "?")
    static let at = UInt8(ascii: "@")
    static let backslash = UInt8(ascii: "\\")

    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    var isLowercase: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
    var isLetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= (self | 0x20) }
    var isPrintable: Bool { 0x20...0x7E ~= self }

    var isKeyStart: Bool { isLowercase || self == .asterisk }

    var isKeyCharacter: Bool {
        switch self {
        case UInt8(ascii: "_"), .minus, .point, .asterisk: true
        default: isLowercase || isDigit
        }
    }

    var isTokenStart: Bool { isLetter || self == .asterisk }

    /// `tchar` of RFC 9110 section 5.6.2, or one of the two other characters that a Token can contain.
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), .asterisk, UInt8(ascii: "+"), .minus, .point, UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"), .colon, UInt8(ascii: "/"):
            true
        default: isLetter || isDigit
        }
    }

    /// The value of a lower-case hexadecimal digit.
    var lowercaseHexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
