import TestSupport
import Testing

@testable import TransferServer

@Suite("Bounded counts")
struct BoundedCountsTests {
    @Test("Beyond the capacity new keys are counted as `other`, and existing keys under their own names")
    func capacity() {
        var counts = BoundedCounts<String>(capacity: 2, others: "other")
        for key in ["a", "b", "c", "d", "a"] { counts.add(to: key) }
        #expect(counts["a"] == 2)
        #expect(counts["b"] == 1)
        #expect(counts["c"] == 0)
        #expect(counts["other"] == 2)
        #expect(counts.sorted.map(\.key) == ["a", "b", "other"])
    }

    @Test("Known keys begin with zero")
    func known() {
        let counts = BoundedCounts<String>(capacity: 1, others: "other", known: ["x", "y", "x"])
        #expect(counts.counts == ["x": 0, "y": 0])
    }

    @Test("Every addition is counted, and the number of keys is at most the capacity plus one")
    func property() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        var counts = BoundedCounts<Int>(capacity: 10, others: -1)
        for _ in 0..<2000 { counts.add(to: Int.random(in: 0..<100, using: &generator)) }
        #expect(counts.counts.count == 11, "seed \(seed)")
        #expect(counts.counts.values.reduce(0, +) == 2000, "seed \(seed)")
    }
}
