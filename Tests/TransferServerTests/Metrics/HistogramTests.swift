import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

@Suite("Histograms")
struct HistogramTests {
    @Test("A value is counted in the first bucket whose bound is not exceeded, and is added to the sum")
    func bounds() {
        var histogram = Histogram(bounds: [1, 2.5, 10])
        for value in [0, 1, 1.5, 2.5, 3, 10, 11] { histogram.observe(value) }
        #expect(histogram.counts == [2, 2, 2])
        #expect(histogram.count == 7)
        #expect(histogram.sum == 29)
        #expect(histogram.cumulative.map(\.count) == [2, 4, 6])
        #expect(histogram.cumulative.map(\.bound) == [1, 2.5, 10])
    }

    @Test("Cumulative counts never decrease and never exceed the count, for random values")
    func property() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        var histogram = Histogram(bounds: Histogram.storageSeconds)
        for _ in 0..<1000 {
            let magnitude = Double.random(in: -6...2, using: &generator)
            var value = 1.0
            for _ in 0..<Int(abs(magnitude)) { value *= magnitude < 0 ? 0.1 : 10 }
            histogram.observe(value)
            let counts = histogram.cumulative.map(\.count)
            #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 <= $1 }, "seed \(seed)")
            #expect((counts.last ?? 0) <= histogram.count, "seed \(seed)")
        }
        #expect(histogram.count == 1000)
    }

    @Test("The bounds for storage are in ascending order")
    func ascending() {
        let bounds = Histogram.storageSeconds
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 })
    }
}
