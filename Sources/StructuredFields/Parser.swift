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

    /// §4.2.1
    mutating func list() throws(ParseFailure) -> List {
        var members: [Member] = []
        while position < bytes.count {
            members.append(try member())
            try separator()
        }
        return List(members)
    }

    /// §4.2.2
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

    /// §4.2.3
    mutating func item() throws(ParseFailure) -> Item {
        let value = try bareItem()
        return Item(value, parameters: try parameters())
    }

    /// §4.2.1.1
    private mutating func member() throws(ParseFailure) -> Member {
        if current == .openParenthesis { return .innerList(try innerList()) }
        return .item(try item())
    }

    /// §4.2.1.2
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

    /// §4.2.3.2
    private mutating func parameters() throws(ParseFailure) -> Parameters {
        var parameters = Parameters()
        while consume(.semicolon) {
            skipSpaces()
            let key = try key()
            parameters[key] = consume(.equals) ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    /// §4.2.3.3
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
