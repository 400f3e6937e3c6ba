import Digests
import Testing

struct HexadecimalTests {
    @Test(
        "A number has the same hexadecimal digits as the text that the standard library makes of it",
        arguments: [0, 1, 9, 10, 15, 16, 255, 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210, .max] as [UInt64])
    func numbers(number: UInt64) {
        let expected = String(number, radix: 16)
        #expect(number.hexadecimalWidth == expected.utf8.count)
        #expect(text(number, number.hexadecimalWidth) == expected)
        #expect(text(number, 16) == String(repeating: "0", count: 16 - expected.utf8.count) + expected)
    }

    @Test("Bytes are written with two digits each")
    func bytes() {
        #expect(([] as [UInt8]).hexadecimal == "")
        #expect(([0x00, 0x0A, 0xA0, 0xFF, 0x12] as [UInt8]).hexadecimal == "000aa0ff12")
    }

    private func text(_ number: UInt64, _ count: Int) -> String {
        String(unsafeUninitializedCapacity: count) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            number.writeHexadecimal(count, to: start)
            return count
        }
    }
}
