/// Writes values one after the other: integers in big-endian order, values of variable length after their length.
struct ByteEncoder {
    private(set) var bytes: [UInt8] = []

    /// Reserves space for most rows, so that the bytes are not copied as they become more.
    init() { bytes.reserveCapacity(256) }

    mutating func write(_ value: UInt8) { bytes.append(value) }

    mutating func write(_ value: Int64) {
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func write(_ value: Int) { write(Int64(value)) }

    mutating func write(_ value: Bool) { write(value ? 1 as UInt8 : 0) }

    mutating func write(_ value: [UInt8]) {
        write(value.count)
        bytes += value
    }

    mutating func write(_ value: String) {
        write(value.utf8.count)
        bytes += value.utf8
    }

    mutating func write(_ value: Int64?) {
        write(value != nil)
        if let value { write(value) }
    }

    mutating func write(_ value: String?) {
        write(value != nil)
        if let value { write(value) }
    }

    mutating func write<Element>(_ values: [Element], _ body: (inout ByteEncoder, Element) -> Void) {
        write(values.count)
        for value in values { body(&self, value) }
    }
}

/// Reads what ``ByteEncoder`` wrote. Never reads past the end, whatever the bytes are.
struct ByteDecoder {
    /// The bytes are not a valid encoding of the requested value.
    struct Malformed: Error {}

    private var remaining: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { remaining = bytes[...] }

    var isAtEnd: Bool { remaining.isEmpty }

    private mutating func take(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remaining.count else { throw Malformed() }
        defer { remaining = remaining.dropFirst(count) }
        return remaining.prefix(count)
    }

    mutating func byte() throws(Malformed) -> UInt8 { try take(1).first ?? 0 }

    mutating func integer() throws(Malformed) -> Int64 {
        Int64(bitPattern: try take(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
    }

    mutating func boolean() throws(Malformed) -> Bool { try byte() == 1 }

    mutating func byteArray() throws(Malformed) -> [UInt8] {
        guard let count = Int(exactly: try integer()) else { throw Malformed() }
        return Array(try take(count))
    }

    mutating func string() throws(Malformed) -> String {
        guard let string = String(validating: try byteArray(), as: UTF8.self) else { throw Malformed() }
        return string
    }

    mutating func optionalInteger() throws(Malformed) -> Int64? { try boolean() ? integer() : nil }

    mutating func optionalString() throws(Malformed) -> String? { try boolean() ? string() : nil }

    mutating func array<Element>(
        _ body: (inout ByteDecoder) throws(Malformed) -> Element
    ) throws(Malformed) -> [Element] {
        // Every element has at least one byte, so that a wrong count causes no endless loop and no large allocation.
        let count = try integer()
        guard count >= 0, count <= Int64(remaining.count) else { throw Malformed() }
        var result: [Element] = []
        for _ in 0..<count { result.append(try body(&self)) }
        return result
    }
}
