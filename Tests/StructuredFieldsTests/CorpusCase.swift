import StructuredFields

/// One case of the corpus.
struct CorpusCase {
    enum FieldType: String {
        case item, list, dictionary
    }

    struct Unreadable: Error {
        var value: JSONValue?
    }

    var name: String
    var type: FieldType
    /// The field lines to parse; `nil` in cases that are only serialized.
    var raw: [String]?
    var expected: JSONValue?
    /// The expected serialized value, on one line.
    var canonical: String
    var mustFail: Bool
    var canFail: Bool

    init(_ json: JSONValue) throws {
        guard let name = json["name"]?.string, let type = json["header_type"]?.string.flatMap(FieldType.init) else {
            throw Unreadable(value: json)
        }
        self.name = name
        self.type = type
        raw = json["raw"]?.array?.compactMap(\.string)
        expected = json["expected"]
        canonical = (json["canonical"]?.array?.compactMap(\.string) ?? raw ?? []).joined(separator: ", ")
        mustFail = json["must_fail"]?.isTrue ?? false
        canFail = json["can_fail"]?.isTrue ?? false
    }
}

extension CorpusCase {
    /// `expected` as the value that parsing has to return, or `nil` if the types of this module cannot represent it.
    func expectedItem() throws -> Item? {
        try Self.item(expected)
    }

    func expectedList() throws -> List? {
        let members = try Self.elements(expected).map(Self.member)
        return members.contains(nil) ? nil : List(members.compactMap(\.self))
    }

    func expectedDictionary() throws -> OrderedDictionary? {
        var dictionary = OrderedDictionary()
        for entry in try Self.elements(expected) {
            let pair = try Self.elements(entry, count: 2)
            guard let key = pair[0].string else { throw Unreadable(value: entry) }
            guard let member = try Self.member(pair[1]) else { return nil }
            dictionary[key] = member
        }
        return dictionary
    }

    private static func elements(_ json: JSONValue?, count: Int? = nil) throws -> [JSONValue] {
        guard let elements = json?.array, count ?? elements.count == elements.count else {
            throw Unreadable(value: json)
        }
        return elements
    }

    private static func member(_ json: JSONValue) throws -> Member? {
        let pair = try elements(json, count: 2)
        guard case .array(let inner) = pair[0] else { return try item(json).map(Member.item) }
        let items = try inner.map(item)
        guard !items.contains(nil), let parameters = try parameters(pair[1]) else { return nil }
        return .innerList(InnerList(items.compactMap(\.self), parameters: parameters))
    }

    private static func item(_ json: JSONValue?) throws -> Item? {
        let pair = try elements(json, count: 2)
        guard let value = try bareItem(pair[0]), let parameters = try parameters(pair[1]) else { return nil }
        return Item(value, parameters: parameters)
    }

    private static func parameters(_ json: JSONValue) throws -> Parameters? {
        var parameters = Parameters()
        for entry in try elements(json) {
            let pair = try elements(entry, count: 2)
            guard let key = pair[0].string else { throw Unreadable(value: entry) }
            guard let value = try bareItem(pair[1]) else { return nil }
            parameters[key] = value
        }
        return parameters
    }

    private static func bareItem(_ json: JSONValue) throws -> BareItem? {
        switch json {
        case .boolean(let value): return .boolean(value)
        case .string(let value): return .string(value)
        case .number(let text):
            if let integer = Int(text) { return .integer(integer) }
            return Double(text).flatMap(Decimal.init(rounding:)).map(BareItem.decimal)
        default: break
        }
        switch (json["__type"]?.string, json["value"]) {
        case ("token", .string(let value)?): return .token(value)
        case ("binary", .string(let value)?): return .byteSequence(bytes(base32: value))
        case ("date", .number(let text)?): return Int(text).map(BareItem.date)
        case ("displaystring", .string(let value)?): return .displayString(value)
        default: throw Unreadable(value: json)
        }
    }

    /// Decodes base32 (RFC 4648 section 6); the text of the corpus is well formed.
    private static func bytes(base32 text: String) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
        var bytes: [UInt8] = []
        var bits = 0
        var width = 0
        for value in text.utf8.compactMap({ alphabet.firstIndex(of: $0) }) {
            bits = (bits << 5 | value) & 0xFFFF
            width += 5
            if width >= 8 {
                width -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> width))
            }
        }
        return bytes
    }
}
