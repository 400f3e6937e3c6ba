import Digests
import Foundation

/// Records in a file that grows at its end: each one is a line with a checksum before its JSON text.
///
/// A record that was cut off by a crash, or altered, is left out. It does not harm the next one: each record also
/// begins with a line feed.
enum RecordLines {
    /// The bytes to append for a record.
    static func line(_ record: some Encodable) throws -> [UInt8] {
        let text = RecordText()
        try text.append(record)
        let checksum = checksum(text.bytes[...])
        return [UInt8(ascii: "\n")] + checksum + [UInt8(ascii: " ")] + text.bytes + [UInt8(ascii: "\n")]
    }

    /// The records whose lines are complete.
    static func records<Record: Decodable>(_ type: Record.Type, in bytes: some Collection<UInt8>) -> [Record] {
        let decoder = JSONDecoder()
        return bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = Array(line.dropFirst(checksumSize + 1))
            guard line.prefix(checksumSize).elementsEqual(checksum(text[...])) else { return nil }
            return try? decoder.decode(type, from: Data(text))
        }
    }

    private static let checksumSize = 8

    /// The first digits of the SHA-256.
    private static func checksum(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        text.withUnsafeBytes { digest.update($0) }
        return Array(Array(digest.finalized().prefix(checksumSize / 2)).hexadecimal.utf8)
    }
}

/// The JSON text (RFC 8259) of a record.
///
/// A `put` of several files writes two records for each file. `JSONEncoder` makes a tree of all parts of a value before
/// it writes them, and needs several times as long as this type, which writes each part when the value encodes it. The
/// members are in the order in which they are encoded. Numbers are integers, and values use no nested containers.
private final class RecordText {
    private(set) var bytes: [UInt8] = []
    /// The character that ends the object or array that is being encoded; `nil` if the value has begun none.
    private var end: UInt8?
    /// Whether this object or array has no element yet.
    private var isEmpty = true

    func append(_ value: some Encodable) throws {
        let outer = (end, isEmpty)
        end = nil
        try value.encode(to: RecordEncoder(text: self))
        if let end { bytes.append(end) }
        (end, isEmpty) = outer
    }

    /// Begins an object or array, unless the value has begun it. A value can get its container several times.
    func begin(_ start: UInt8, _ end: UInt8) {
        guard self.end == nil else { return }
        bytes.append(start)
        self.end = end
        isEmpty = true
    }

    /// Appends the separator before the next element of the object or array.
    func appendSeparator() {
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        isEmpty = false
    }

    func append(raw text: String) { bytes += text.utf8 }

    func append(quoted text: String) {
        // Each access to a property of a class is checked, so the text is appended at once.
        var quoted: [UInt8] = []
        quoted.reserveCapacity(text.utf8.count + 2)
        quoted.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += [UInt8(ascii: "\\"), byte]
            case ..<0x20: quoted += ("\\u00" + [byte].hexadecimal).utf8
            default: quoted.append(byte)
            }
        }
        quoted.append(UInt8(ascii: "\""))
        bytes += quoted
    }
}

private struct RecordEncoder: Encoder {
    let text: RecordText
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        text.begin(UInt8(ascii: "{"), UInt8(ascii: "}"))
        return KeyedEncodingContainer(Members(text: text))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        text.begin(UInt8(ascii: "["), UInt8(ascii: "]"))
        return Elements(text: text)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(text: text) }

    private struct Single: SingleValueEncodingContainer {
        let text: RecordText
        var codingPath: [any CodingKey] { [] }

        func encodeNil() { text.append(raw: "null") }
        func encode(_ value: Bool) { text.append(raw: value ? "true" : "false") }
        func encode(_ value: String) { text.append(quoted: value) }
        func encode(_ value: some FixedWidthInteger & Encodable) { text.append(raw: String(value)) }
        func encode(_ value: some BinaryFloatingPoint & Encodable) throws {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "a record has no fractions"))
        }
        func encode(_ value: some Encodable) throws { try text.append(value) }
    }

    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let text: RecordText
        var codingPath: [any CodingKey] { [] }

        private func begin(_ key: Key) {
            text.appendSeparator()
            text.append(quoted: key.stringValue)
            text.append(raw: ":")
        }

        func encodeNil(forKey key: Key) {
            begin(key)
            text.append(raw: "null")
        }

        func encode(_ value: some Encodable, forKey key: Key) throws {
            begin(key)
            try text.append(value)
        }

        func nestedContainer<NestedKey>(
            keyedBy type: NestedKey.Type, forKey key: Key
        ) -> KeyedEncodingContainer<NestedKey> { RecordEncoder.unsupported() }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { RecordEncoder.unsupported() }
        func superEncoder() -> any Encoder { RecordEncoder.unsupported() }
        func superEncoder(forKey key: Key) -> any Encoder { RecordEncoder.unsupported() }
    }

    private struct Elements: UnkeyedEncodingContainer {
        let text: RecordText
        private(set) var count = 0
        var codingPath: [any CodingKey] { [] }

        init(text: RecordText) { self.text = text }

        mutating func encodeNil() {
            begin()
            text.append(raw: "null")
        }

        mutating func encode(_ value: some Encodable) throws {
            begin()
            try text.append(value)
        }

        private mutating func begin() {
            text.appendSeparator()
            count += 1
        }

        func nestedContainer<NestedKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
            RecordEncoder.unsupported()
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { RecordEncoder.unsupported() }
        func superEncoder() -> any Encoder { RecordEncoder.unsupported() }
    }

    private static func unsupported() -> Never { preconditionFailure("a record has no nested containers") }
}
