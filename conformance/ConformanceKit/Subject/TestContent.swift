/// The content of all test uploads. The value of a byte depends on its offset alone.
enum TestContent {
    static func bytes(_ count: Int, from offset: Int = 0) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            for index in 0..<count { buffer[index] = byte(at: offset + index) }
            filled = count
        }
    }

    static func byte(at offset: Int) -> UInt8 {
        // With a multiplicative hash (Knuth) neighboring bytes and pages differ.
        UInt8(truncatingIfNeeded: (UInt64(truncatingIfNeeded: offset) &* 0x9E37_79B9_7F4A_7C15) >> 56)
    }
}
