/// The serializing algorithms of RFC 9651 section 4.1.
struct Serializer {
    private var output: [UInt8] = []

    /// The output so far, in ASCII.
    var text: String { String(decoding: output, as: UTF8.self) }

    /// RFC 9651 section 4.1.1
    mutating func append(_ list: List) throws(SerializationFailure) {
        for (index, member) in list.members.enumerated() {
            if index > 0 { append(", ") }
            try append(member)
        }
    }

    /// RFC 9651 section 4.1.2
    mutating func append(_ dictionary: OrderedDictionary) throws(SerializationFailure) {
        var isFirst = true
        for (key, member) in dictionary {
            if !isFirst { append(", ") }
            isFirst = false
            try append(key: key)
            if case .item(let item) = member, item.value == .boolean(true) {
                try append(item.parameters)
            } else {
                output.append(.equals)
                try append(member)
            }
        }
    }

    /// RFC 9651 section 4.1.3
    mutating func append(_ item: Item) throws(SerializationFailure) {
        try append(item.value)
        try append(item.parameters)
    }

    private mutating func append(_ member: Member) throws(SerializationFailure) {
        switch member {
        case .item(let item): try append(item)
        case .innerList(let list): try append(list)
        }
    }

    /// RFC 9651 section 4.1.1.1
    private mutating func append(_ list: InnerList) throws(SerializationFailure) {
        output.append(.openParenthesis)
        for (index, item) in list.items.enumerated() {
            if index > 0 { output.append(.space) }
            try append(item)
        }
        output.append(.closeParenthesis)
        try append(list.parameters)
    }

    /// RFC 9651 section 4.1.1.2
    private mutating func append(_ parameters: Parameters) throws(SerializationFailure) {
        for (key, value) in parameters {
            output.append(.semicolon)
            try append(key: key)
            guard value != .boolean(true) else { continue }
            output.append(.equals)
            try append(value)
        }
    }

    /// RFC 9651 section 4.1.1.3
    private mutating func append(key: String) throws(SerializationFailure) {
        guard let first = key.utf8.first, first.isKeyStart, key.utf8.allSatisfy(\.isKeyCharacter) else {
            throw SerializationFailure(reason: .invalidKey)
        }
        append(key)
    }

    /// RFC 9651 section 4.1.3.1
    private mutating func append(_ value: BareItem) throws(SerializationFailure) {
        switch value {
        case .integer(let integer):
            try append(integer, else: .integerOutOfRange)
        case .decimal(let decimal):
            append(decimal.description)
        case .string(let string):
            try append(string: string)
        case .token(let token):
            guard let first = token.utf8.first, first.isTokenStart, token.utf8.allSatisfy(\.isTokenCharacter) else {
                throw SerializationFailure(reason: .invalidToken)
            }
            append(token)
        case .byteSequence(let bytes):
            output.append(.colon)
            Base64.encode(bytes, into: &output)
            output.append(.colon)
        case .boolean(let boolean):
            append(boolean ? "?1" : "?0")
        case .date(let seconds):
            output.append(.at)
            try append(seconds, else: .dateOutOfRange)
        case .displayString(let string):
            append(displayString: string)
        }
    }

    /// RFC 9651 section 4.1.4
    private mutating func append(
        _ integer: Int, else reason: SerializationFailure.Reason
    ) throws(SerializationFailure) {
        guard (-BareItem.maxInteger...BareItem.maxInteger).contains(integer) else {
            throw SerializationFailure(reason: reason)
        }
        append(String(integer))
    }

    /// RFC 9651 section 4.1.6
    private mutating func append(string: String) throws(SerializationFailure) {
        output.append(.quote)
        for byte in string.utf8 {
            guard byte.isPrintable else { throw SerializationFailure(reason: .invalidString) }
            if byte == .quote || byte == .backslash { output.append(.backslash) }
            output.append(byte)
        }
        output.append(.quote)
    }

    /// RFC 9651 section 4.1.11
    private mutating func append(displayString: String) {
        let digits = Array("0123456789abcdef".utf8)
        append("%\"")
        for byte in displayString.utf8 {
            if byte.isPrintable, byte != .quote, byte != .percent {
                output.append(byte)
            } else {
                output += [.percent, digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
            }
        }
        output.append(.quote)
    }

    private mutating func append(_ text: String) {
        output += text.utf8
    }
}

/// The reason why a value cannot be serialized as a structured field (RFC 9651 section 4.1).
package struct SerializationFailure: Error, Hashable, Sendable {
    /// The kind of value that cannot be serialized.
    package enum Reason: String, Hashable, Sendable {
        /// An Integer outside ±999,999,999,999,999 (RFC 9651 section 4.1.4).
        case integerOutOfRange
        /// A Date outside ±999,999,999,999,999 seconds (RFC 9651 section 4.1.10).
        case dateOutOfRange
        /// A String with a character outside 0x20–0x7E (RFC 9651 section 4.1.6).
        case invalidString
        /// A Token that is empty or has a character that a Token does not allow (RFC 9651 section 4.1.7).
        case invalidToken
        /// A key that is empty or has a character that a key does not allow (RFC 9651 section 4.1.1.3).
        case invalidKey
    }

    package var reason: Reason

    package init(reason: Reason) {
        self.reason = reason
    }
}

extension SerializationFailure: CustomStringConvertible {
    package var description: String { reason.rawValue }
}
