/// The numbers of the types that this program sends and reads (pg_type.dat of PostgreSQL; they never change).
enum TypeNumber {
    static let boolean: UInt32 = 16
    static let bytes: UInt32 = 17
    static let integer: UInt32 = 20
    static let text: UInt32 = 25
    static let byteArrays: UInt32 = 1001
    static let texts: UInt32 = 1009
    static let integers: UInt32 = 1016
}

extension DatabaseValue {
    /// The type of a parameter; 0 for NULL, whose type the server derives from the statement.
    var typeNumber: UInt32 {
        switch self {
        case .null: 0
        case .integer: TypeNumber.integer
        case .text: TypeNumber.text
        case .bytes: TypeNumber.bytes
        case .boolean: TypeNumber.boolean
        case .integers: TypeNumber.integers
        case .texts: TypeNumber.texts
        case .byteArrays: TypeNumber.byteArrays
        }
    }

    /// Appends the value in the binary format. NULL has no bytes.
    func append(to buffer: inout [UInt8]) {
        switch self {
        case .null: break
        case .integer(let value): buffer.appendBigEndian(value)
        case .text(let value): buffer += value.utf8
        case .bytes(let value): buffer += value
        case .boolean(let value): buffer.append(value ? 1 : 0)
        case .integers(let values):
            buffer.appendArray(values, of: TypeNumber.integer) { $0.appendBigEndian($1) }
        case .texts(let values): buffer.appendArray(values, of: TypeNumber.text) { $0 += $1.utf8 }
        case .byteArrays(let values): buffer.appendArray(values, of: TypeNumber.bytes) { $0 += $1 }
        }
    }

    /// Reads a value of a result; `nil` if the type is unknown or the bytes do not have its form.
    init?(_ bytes: UnsafeRawBufferPointer, ofType number: UInt32) {
        switch number {
        case TypeNumber.boolean:
            guard bytes.count == 1 else { return nil }
            self = .boolean(bytes[0] != 0)
        case TypeNumber.bytes: self = .bytes(Array(bytes))
        // bigint, smallint, integer, oid, xid8
        case TypeNumber.integer, 21, 23, 26, 5069:
            guard let value = bytes.integer(isSigned: number != 26) else { return nil }
            self = .integer(value)
        // text, name, unknown, char, varchar
        case TypeNumber.text, 19, 705, 1042, 1043: self = .text(String(decoding: bytes, as: UTF8.self))
        // bigint[], integer[]
        case TypeNumber.integers, 1007:
            guard let values = bytes.array(map: { $0.integer(isSigned: true) }) else { return nil }
            self = .integers(values)
        case TypeNumber.texts:
            guard let values = bytes.array(map: { String(decoding: $0, as: UTF8.self) }) else { return nil }
            self = .texts(values)
        case TypeNumber.byteArrays:
            guard let values = bytes.array(map: { [UInt8]($0) }) else { return nil }
            self = .byteArrays(values)
        // The result of a function that returns nothing.
        case 2278: self = .null
        default: return nil
        }
    }
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { self += $0 }
    }

    /// Appends an array with one dimension (array_send of PostgreSQL): the number of dimensions, whether there are NULL
    /// values, the type of the elements, for each dimension its size and first index, then each element with its size.
    fileprivate mutating func appendArray<Value>(
        _ values: [Value?], of type: UInt32, _ append: (inout [UInt8], Value) -> Void
    ) {
        appendBigEndian(Int32(values.isEmpty ? 0 : 1))
        appendBigEndian(Int32(values.contains { $0 == nil } ? 1 : 0))
        appendBigEndian(type)
        if values.isEmpty { return }
        appendBigEndian(Int32(values.count))
        appendBigEndian(Int32(1))
        for value in values {
            let start = count
            appendBigEndian(Int32(-1))
            guard let value else { continue }
            append(&self, value)
            let size = UInt32(count - start - 4)
            for index in 0..<4 { self[start + index] = UInt8(truncatingIfNeeded: size >> UInt32(24 - 8 * index)) }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// An integer of 2, 4 or 8 bytes in big-endian order.
    fileprivate func integer(isSigned: Bool) -> Int64? {
        switch count {
        case 2: Int64(Int16(bigEndian: loadUnaligned(as: Int16.self)))
        case 4 where isSigned: Int64(Int32(bigEndian: loadUnaligned(as: Int32.self)))
        case 4: Int64(UInt32(bigEndian: loadUnaligned(as: UInt32.self)))
        case 8: Int64(bigEndian: loadUnaligned(as: Int64.self))
        default: nil
        }
    }

    private func count(at offset: Int) -> Int? {
        guard offset + 4 <= count else { return nil }
        return Int(Int32(bigEndian: loadUnaligned(fromByteOffset: offset, as: Int32.self)))
    }

    /// The elements of an array with at most one dimension; `nil` if the bytes have another form.
    fileprivate func array<Value>(map: (UnsafeRawBufferPointer) -> Value?) -> [Value?]? {
        guard let dimensions = count(at: 0), dimensions != 0 else { return count(at: 0) == nil ? nil : [] }
        guard dimensions == 1, let size = count(at: 12), size >= 0 else { return nil }
        var values: [Value?] = []
        var offset = 20
        for _ in 0..<size {
            guard let length = count(at: offset) else { return nil }
            offset += 4
            guard length >= 0 else {
                values.append(nil)
                continue
            }
            guard length <= count - offset,
                let value = map(UnsafeRawBufferPointer(rebasing: self[offset..<offset + length]))
            else { return nil }
            values.append(value)
            offset += length
        }
        return values
    }
}
