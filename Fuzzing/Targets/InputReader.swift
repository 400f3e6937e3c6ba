/// Splits an input: numbers are read from its beginning, and text from the remaining bytes.
struct InputReader {
    private(set) var remaining: UnsafeRawBufferPointer

    init(_ input: UnsafeRawBufferPointer) { remaining = input }

    /// Returns the next byte, or 0 at the end.
    mutating func byte() -> UInt8 {
        guard let first = remaining.first else { return 0 }
        remaining = UnsafeRawBufferPointer(rebasing: remaining.dropFirst())
        return first
    }

    /// Returns a number of eight bytes in big-endian order; missing bytes are 0.
    mutating func integer() -> Int64 {
        var value: UInt64 = 0
        for _ in 0..<8 { value = value << 8 | UInt64(byte()) }
        return Int64(bitPattern: value)
    }

    /// The remaining bytes as text, decoded as the programs decode received bytes.
    var text: String { String(decoding: remaining, as: UTF8.self) }

    /// The remaining text, with one field line on each line.
    var lines: [String] {
        remaining.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns an input of a number, which `integer()` reads, and a text.
    static func input(_ number: Int64, _ text: String) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) } + text.utf8
    }
}
