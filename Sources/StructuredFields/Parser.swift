/// The parsing algorithms of RFC 9651 §4.2 over one combined field value.
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

    /// RFC 9651 §4.2.1
    mutating func list() throws(ParseFailure) -> List {
        var members: [Member] = []
        while position < bytes.count {
            members.append(try member())
            try separator()
        }
        return List(members)
    }

    /// RFC 9651 §4.2.2
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

    /// RFC 9651 §4.2.3
    mutating func item() throws(ParseFailure) -> Item {
        let value = try bareItem()
        return Item(value, parameters: try parameters())
    }

    /// RFC 9651 §4.2.1.1
    private mutating func member() throws(ParseFailure) -> Member {
        if current == .openParenthesis { return .innerList(try innerList()) }
        return .item(try item())
    }

    /// RFC 9651 §4.2.1.2
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

    /// RFC 9651 §4.2.3.2
    private mutating func parameters() throws(ParseFailure) -> Parameters {
        var parameters = Parameters()
        while consume(.semicolon) {
            skipSpaces()
            let key = try key()
            parameters[key] = consume(.equals) ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    /// RFC 9651 §4.2.3.3
    private mutating func key() throws(ParseFailure) -> String {
        guard let first = current else { throw failure(.unexpectedEnd) }
        guard first.startsKey else { throw failure(.invalidKey) }
        return text(while: \.continuesKey)
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

/// The reason why a field value is not a structured field of the expected type (RFC 9651 §4.2).
///
/// Such a field must be ignored entirely.
package struct ParseFailure: Error, Hashable, Sendable {
    /// The kind of syntax error.
    package enum Reason: String, Hashable, Sendable {
        /// A byte above 0x7F; structured fields are ASCII.
        case nonASCII
        /// The value ended before it was complete.
        case unexpectedEnd
        /// Something follows a complete value.
        case trailingCharacters
        /// A List or Dictionary ends in a comma.
        case trailingComma
        /// Two members are not separated by a comma.
        case missingComma
        /// No key starts here (§3.1.2).
        case invalidKey
        /// No Item or Inner List starts here.
        case invalidItem
        /// The items of an Inner List are not separated by spaces (§3.1.1).
        case invalidInnerList
        /// A sign without digits, or a Decimal that does not have one to three fractional digits (§3.3.1, §3.3.2).
        case invalidNumber
        /// An Integer of more than 15 digits, or a Decimal with more than 12 before the point.
        case numberTooLong
        /// A character or escape that a String does not allow (§3.3.3).
        case invalidString
        /// Not base64 (§3.3.5).
        case invalidByteSequence
        /// Neither `?0` nor `?1` (§3.3.6).
        case invalidBoolean
        /// A Date with a fraction (§3.3.7).
        case invalidDate
        /// A bad escape in a Display String, or escapes that are not UTF-8 (§3.3.8).
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
