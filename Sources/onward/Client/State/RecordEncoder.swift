/// Writes records of lists as JSON (RFC 8259), each in one step. Foundation's encoder, which first creates an object for
/// each value, needs several times as long as the other work for such a record.
///
/// It supports what records contain: objects, arrays, texts, integers and truth values.
final class RecordEncoder: Encoder {
    /// - Throws: `EncodingError` for a value that is not supported.
    static func encode(_ record: some Encodable) throws -> [UInt8] {
        let encoder = RecordEncoder()
        encoder.bytes.reserveCapacity(1024)
        try encoder.write(record)
        return encoder.bytes
    }

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var bytes: [UInt8] = []
    /// The end of the object or array whose members are written; `nil` before its beginning.
    private var end: UInt8?
    private var isEmpty = true

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        begin("{", "}")
        return KeyedEncodingContainer(ObjectMembers(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        begin("[", "]")
        return ArrayElements(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { SingleValue(encoder: self) }

    /// Several containers of one value have their members in the same object.
    private func begin(_ first: Unicode.Scalar, _ last: Unicode.Scalar) {
        if end == nil { bytes.append(UInt8(ascii: first)) }
        end = UInt8(ascii: last)
    }

    fileprivate func separate() {
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        isEmpty = false
    }

    fileprivate func write(key: String) {
        separate()
        writeText(key)
        bytes.append(UInt8(ascii: ":"))
    }

    fileprivate func write<Value: Encodable>(_ value: Value) throws {
        if writeScalar(value) { return }
        let outer = (end, isEmpty)
        (end, isEmpty) = (nil, true)
        try value.encode(to: self)
        if let end { bytes.append(end) }
        (end, isEmpty) = outer
    }

    /// Writes a text, a number or a truth value. Comparing types takes much less time than casts.
    /// - Returns: whether the value is one of these.
    fileprivate func writeScalar<Value>(_ value: Value) -> Bool {
        func write<Scalar: CustomStringConvertible>(as type: Scalar.Type) -> Bool {
            guard Value.self == type else { return false }
            // The descriptions of these types are also their forms in JSON.
            bytes += (value as! Scalar).description.utf8
            return true
        }
        guard Value.self == String.self else {
            return write(as: Int64.self) || write(as: Int.self) || write(as: Bool.self) || write(as: UInt64.self)
                || write(as: UInt32.self) || write(as: UInt8.self)
        }
        writeText(value as! String)
        return true
    }

    fileprivate func writeNull() { bytes += "null".utf8 }

    private func writeText(_ text: String) {
        var text = text
        text.withUTF8 { text in
            bytes.append(UInt8(ascii: "\""))
            if text.contains(where: Self.isEscaped) {
                for byte in text { bytes += Self.isEscaped(byte) ? Self.escape(of: byte) : [byte] }
            } else {
                bytes += text
            }
            bytes.append(UInt8(ascii: "\""))
        }
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func escape(of byte: UInt8) -> [UInt8] {
        let digits = String(byte, radix: 16)
        return Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
    }

    fileprivate static func unsupported(_ value: Any) -> EncodingError {
        .invalidValue(value, .init(codingPath: [], debugDescription: "records contain no such value"))
    }
}

// A generic function is also the one that the protocols require for each type of number.

private struct ObjectMembers<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: RecordEncoder
    let codingPath: [any CodingKey] = []

    func encode(_ value: some Encodable, forKey key: Key) throws {
        encoder.write(key: key.stringValue)
        try encoder.write(value)
    }

    func encodeNil(forKey key: Key) {
        encoder.write(key: key.stringValue)
        encoder.writeNull()
    }

    func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
        fatalError("records have no nested containers")
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        fatalError("records have no nested containers")
    }

    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

private struct ArrayElements: UnkeyedEncodingContainer {
    let encoder: RecordEncoder
    let codingPath: [any CodingKey] = []
    private(set) var count = 0

    init(encoder: RecordEncoder) { self.encoder = encoder }

    mutating func encode(_ value: some Encodable) throws {
        count += 1
        encoder.separate()
        try encoder.write(value)
    }

    mutating func encodeNil() {
        count += 1
        encoder.separate()
        encoder.writeNull()
    }

    func nestedContainer<Nested>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        fatalError("records have no nested containers")
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { fatalError("records have no nested containers") }

    func superEncoder() -> any Encoder { encoder }
}

private struct SingleValue: SingleValueEncodingContainer {
    let encoder: RecordEncoder
    let codingPath: [any CodingKey] = []

    func encode(_ value: some Encodable) throws {
        // A number of another type encodes itself in this manner.
        guard encoder.writeScalar(value) else { throw RecordEncoder.unsupported(value) }
    }

    func encodeNil() { encoder.writeNull() }
}
