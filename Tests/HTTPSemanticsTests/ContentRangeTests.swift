import HTTPSemantics
import TestSupport
import Testing

@Suite struct ContentRangeTests {
    @Test(
        "RNG-03: Content-Range is written and read",
        arguments: [
            ("bytes 2-4/10", 2..<5, 10), ("bytes 0-9/10", 0..<10, 10), ("bytes 0-0/*", 0..<1, nil),
            ("bytes */0", nil, 0),
            ("bytes */10", nil, 10), ("bytes 0-9223372036854775805/9223372036854775806", 0..<(.max - 1), .max - 1),
        ] as [(String, Range<Int64>?, Int64?)])
    func roundTrip(value: String, range: Range<Int64>?, size: Int64?) {
        let parsed = ContentRange(parsing: value)
        #expect(parsed?.range == range && parsed?.size == size)
        #expect(parsed?.serialized == value)
        #expect(ContentRange(parsing: " BYTES" + value.dropFirst(5) + " ") == parsed)
    }

    @Test(
        "RNG-28: a malformed or contradictory Content-Range is refused",
        arguments: [
            "", "bytes", "bytes ", "bytes 4-2/10", "bytes 0-10/10", "bytes 0-9/9", "bytes */*", "bytes 0-9",
            "bytes 0-/10", "bytes -5/10",
            "items 0-9/10", "bytes=0-9/10", "bytes  0-9/10", "bytes 0 - 9/10", "bytes 0-9 /10", "bytes 0-9/10x",
            "bytes 0-9/10, bytes 0-9/10",
            "bytes 0-9223372036854775807/*", "bytes 0-9/18446744073709551616",
            "bytes 18446744073709551616-18446744073709551617/*",
            "bytes +0-9/10",
        ])
    func refused(value: String) {
        #expect(ContentRange(parsing: value) == nil)
    }

    @Test("a range that is empty or outside the representation has no Content-Range")
    func impossibleRanges() {
        #expect(ContentRange(range: 5..<5, size: 10) == nil)
        #expect(ContentRange(range: -1..<5, size: 10) == nil)
        #expect(ContentRange(range: 0..<11, size: 10) == nil)
        #expect(ContentRange(unsatisfiedSize: -1).serialized == "bytes */0")
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(5_000) {
            let value = generator.mutate("bytes 9223372036854775800-9223372036854775806/9223372036854775807")
            guard let parsed = ContentRange(parsing: value) else { continue }
            #expect(ContentRange(parsing: parsed.serialized) == parsed, "\(value)")
        }
    }
}
