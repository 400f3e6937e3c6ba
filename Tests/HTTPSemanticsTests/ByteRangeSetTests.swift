import HTTPSemantics
import TestSupport
import Testing

@Suite struct ByteRangeSetTests {
    private func resolve(_ value: String, size: Int64 = 10) -> ByteRangeSet.Resolution? {
        ByteRangeSet(fieldLines: [value])?.resolve(size: size)
    }

    @Test(
        "RNG-03 RNG-04: a single range is resolved, even if it has no end or ends beyond the representation",
        arguments: [
            ("bytes=2-4", 2..<5), ("bytes=0-0", 0..<1), ("bytes=5-", 5..<10), ("bytes=5-999", 5..<10),
            ("bytes=0-", 0..<10),
            ("bytes=9-9", 9..<10), ("BYTES=2-4", 2..<5), ("bytes=002-0004", 2..<5), ("bytes=,2-4,", 2..<5),
            ("bytes=2-4 ,\t", 2..<5),
        ] as [(String, Range<Int64>)])
    func singleRange(value: String, range: Range<Int64>) {
        #expect(resolve(value) == .satisfiable([range]))
        #expect(ContentRange(range: range, size: 10)?.range == range)
    }

    @Test(
        "RNG-05: a suffix range may be longer than the representation",
        arguments: [
            ("bytes=-3", 7..<10), ("bytes=-10", 0..<10), ("bytes=-999", 0..<10),
            ("bytes=-99999999999999999999", 0..<10),
        ] as [(String, Range<Int64>)])
    func suffix(value: String, range: Range<Int64>) {
        #expect(resolve(value) == .satisfiable([range]))
    }

    @Test(
        "RNG-06: ranges beyond the end are unsatisfiable",
        arguments: ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=-0,99-", "bytes=-000"])
    func unsatisfiable(value: String) {
        #expect(resolve(value) == .unsatisfiable)
        #expect(ContentRange(unsatisfiedSize: 10).serialized == "bytes */10")
    }

    @Test(
        "RNG-02 RNG-07: another unit or an invalid set is ignored",
        arguments: [
            "items=0-1", "bytes=5-2", "bytes=a-b", "bytes=", "bytes", "", "bytes=-", "bytes=,", "bytes=1", "bytes= 1-2",
            "bytes =1-2",
            "bytes=1 -2", "bytes=1- 2", "bytes=1-2x", "bytes=+1-2", "bytes=1--2", "bytes=--2", "bytes=1-2;3-4",
            "bytes=0x1-2",
            "bytes=1-2, 5-4", "bytes=1-2 3-4", "bytes=\u{0661}-2", "0-1", "bytes:0-1",
            "bytes=99999999999999999999-99999999999999999998",
            "bytes=18446744073709551616-0",
        ])
    func ignored(value: String) {
        #expect(ByteRangeSet(fieldLines: [value]) == nil)
    }

    @Test("RNG-23: several lines or none are ignored")
    func lines() {
        #expect(ByteRangeSet(fieldLines: ["bytes=0-1", "bytes=3-4"]) == nil)
        #expect(ByteRangeSet(fieldLines: ["bytes=0-1", "bytes=0-1"]) == nil)
        #expect(ByteRangeSet(fieldLines: []) == nil)
    }

    @Test("RNG-08 RNG-10: several ranges keep the requested order, and unsatisfiable ones are omitted")
    func several() {
        #expect(resolve("bytes=0-0,4-5") == .satisfiable([0..<1, 4..<6]))
        #expect(resolve("bytes=6-7,0-1,99-") == .satisfiable([6..<8, 0..<2]))
        #expect(resolve("bytes=-1, 0-0") == .satisfiable([9..<10, 0..<1]))
        #expect(resolve("bytes=2-3,0-1") == .satisfiable([2..<4, 0..<2]))
    }

    @Test("RNG-09: overlapping ranges are merged at the position of the first")
    func coalescing() {
        #expect(resolve("bytes=0-4,3-9") == .satisfiable([0..<10]))
        #expect(resolve("bytes=8-9,4-6,0-4") == .satisfiable([8..<10, 0..<7]))
        #expect(resolve("bytes=5-6,0-1,6-7,1-2") == .satisfiable([5..<8, 0..<3]))
        #expect(resolve("bytes=1-1,1-1") == .satisfiable([1..<2]))
        #expect(resolve("bytes=0-9,2-3") == .satisfiable([0..<10]))
    }

    @Test("RNG-11: many or overlapping ranges get the complete representation")
    func abuse() {
        let overlapping = "bytes=" + Array(repeating: "0-", count: 200).joined(separator: ",")
        #expect(resolve(overlapping) == .complete)
        let small = "bytes=" + (0..<17).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        #expect(resolve(small, size: 1_000) == .complete)
        let sixteen = (0..<16).map { (index: Int64) in (index * 2)..<(index * 2 + 1) }
        #expect(resolve(small, size: 32) == .satisfiable(sixteen))
        let set = ByteRangeSet(fieldLines: ["bytes=0-0,2-2"])
        #expect(set?.resolve(size: 10, maxRanges: 1) == .complete)
        #expect(set?.resolve(size: 10, maxRanges: 2) == .satisfiable([0..<1, 2..<3]))
    }

    @Test("RNG-21: numbers beyond 64 bit do not wrap")
    func hugeNumbers() {
        #expect(resolve("bytes=18446744073709551616-") == .unsatisfiable)
        #expect(resolve("bytes=9223372036854775807-", size: .max) == .unsatisfiable)
        #expect(resolve("bytes=9223372036854775808-99999999999999999999", size: .max) == .unsatisfiable)
        #expect(resolve("bytes=9223372036854775806-", size: .max) == .satisfiable([(.max - 1)..<(.max)]))
        #expect(resolve("bytes=1-99999999999999999999") == .satisfiable([1..<10]))
        #expect(resolve("bytes=0-9223372036854775807", size: .max) == .satisfiable([0..<(.max)]))
        #expect(resolve("bytes=-9223372036854775808", size: .max) == .satisfiable([0..<(.max)]))
    }

    @Test("RNG-22: an empty representation satisfies only a suffix range, with the complete representation")
    func empty() {
        #expect(resolve("bytes=0-", size: 0) == .unsatisfiable)
        #expect(resolve("bytes=-5", size: 0) == .complete)
        #expect(resolve("bytes=0-,-5", size: 0) == .complete)
        #expect(resolve("bytes=-0", size: 0) == .unsatisfiable)
        #expect(resolve("bytes=0-0", size: -1) == .unsatisfiable)
        #expect(ContentRange(unsatisfiedSize: 0).serialized == "bytes */0")
    }

    @Test(
        "RNG-11 RNG-21: the resolved ranges are within bounds, are disjoint and select the requested bytes",
        arguments: SeededGenerator.seeds)
    func resolvedRangesAreWithinBounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(3_000) {
            let size = Int64.random(in: 0...40, using: &generator)
            var selected: Set<Int64> = []
            let members = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                let first = Int64.random(in: 0...45, using: &generator)
                let last = first + Int64.random(in: 0...10, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0:
                    selected.formUnion(first..<Swift.max(first, size))
                    return "\(first)-"
                case 1:
                    selected.formUnion(Swift.max(0, size - first)..<size)
                    return "-\(first)"
                default:
                    selected.formUnion((first...last).filter { $0 < size })
                    return "\(first)-\(last)"
                }
            }
            let value = "bytes=" + members.joined(separator: ",")
            guard case .satisfiable(let ranges)? = resolve(value, size: size) else {
                #expect(selected.isEmpty || resolve(value, size: size) == .complete, "\(value) of \(size)")
                continue
            }
            #expect(!ranges.isEmpty && ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= size })
            #expect(ranges.reduce(0) { $0 + $1.count } == selected.count, "\(value) of \(size)")
            #expect(Set(ranges.flatMap { Array($0) }) == selected, "\(value) of \(size)")
        }
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("0123456789-,= b")
        for index in 0..<SeededGenerator.count(5_000) {
            let value =
                switch index % 3 {
                case 0: "bytes=" + generator.string(from: alphabet, upTo: 40)
                case 1: generator.mutate("bytes=0-499, 9223372036854775807-99999999999999999999,-7")
                default: generator.unicode(upTo: 20)
                }
            for size in [0, 1, 1_000, Int64.max] {
                guard case .satisfiable(let ranges)? = resolve(value, size: size) else { continue }
                #expect(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= size }, "\(value)")
                #expect(ranges.count <= 16)
            }
        }
    }
}
