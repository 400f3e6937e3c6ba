extension UInt64 {
    /// The number of hexadecimal digits without leading zeros; 1 for 0.
    package var hexadecimalWidth: Int { Swift.max(1, (67 - leadingZeroBitCount) / 4) }

    /// Writes the last `count` hexadecimal digits of the number, in lower case.
    package func writeHexadecimal(_ count: Int, to output: UnsafeMutablePointer<UInt8>) {
        for index in 0..<count {
            output[index] = UInt8(truncatingIfNeeded: self >> UInt64(4 * (count - 1 - index))).hexadecimalDigit
        }
    }
}

extension [UInt8] {
    /// The bytes in hexadecimal: two lower-case digits for each byte.
    package var hexadecimal: String {
        String(unsafeUninitializedCapacity: 2 * count) { buffer in
            for (index, byte) in enumerated() {
                buffer[2 * index] = (byte >> 4).hexadecimalDigit
                buffer[2 * index + 1] = byte.hexadecimalDigit
            }
            return 2 * count
        }
    }
}

extension UInt8 {
    /// The hexadecimal digit of the last four bits.
    fileprivate var hexadecimalDigit: UInt8 {
        let value = self & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }
}
