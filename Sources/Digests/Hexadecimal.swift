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

    /// The bytes of hexadecimal digits in upper or lower case; `nil` if the text has another character, or an odd number
    /// of digits.
    package init?(hexadecimal text: some StringProtocol) {
        let digits = text.utf8.map(\.hexadecimalValue)
        guard digits.count.isMultiple(of: 2) else { return nil }
        self = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            append(high << 4 | low)
        }
    }
}

extension UInt8 {
    /// The hexadecimal digit of the last four bits.
    fileprivate var hexadecimalDigit: UInt8 {
        let value = self & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    /// The value of a hexadecimal digit.
    fileprivate var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
