/// Reads what ``ByteEncoder`` wrote. Never reads past the end, whatever the bytes are.
struct ByteDecoder {
    /// The bytes are no encoding of what was asked for.
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
