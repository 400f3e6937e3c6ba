/// Takes an input apart: numbers from its front, text from the rest.
struct InputReader {
    private(set) var rest: UnsafeRawBufferPointer

    init(_ input: UnsafeRawBufferPointer) { rest = input }

    /// 0 where nothing is left.
    mutating func byte() -> UInt8 {
        guard let first = rest.first else { return 0 }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
        return first
    }

    /// Eight bytes, big-endian; missing ones are 0.
    mutating func integer() -> Int64 {
        var value: UInt64 = 0
        for _ in 0..<8 { value = value << 8 | UInt64(byte()) }
        return Int64(bitPattern: value)
    }

    /// The rest as text, as the programs read what comes over the wire.
    var text: String { String(decoding: rest, as: UTF8.self) }

    var bytes: [UInt8] { Array(rest) }

    /// The rest, one value a line of the field.
    var lines: [String] {
        rest.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }

    /// An input for which `integer()` gives the number, before the text.
    static func input(_ number: Int64, _ text: String) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) } + text.utf8
    }
}
