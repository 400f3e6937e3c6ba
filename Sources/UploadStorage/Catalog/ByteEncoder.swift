/// Writes values one after the other in a form of our own: integers big-endian, what varies in length behind its count.
struct ByteEncoder {
    private(set) var bytes: [UInt8] = []

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

    mutating func write(_ value: String) { write(Array(value.utf8)) }

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
