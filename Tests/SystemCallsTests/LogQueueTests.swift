import TestSupport
import Testing

@testable import SystemCalls

@Suite("The queue of the log")
struct LogQueueTests {
    @Test(
        "Order and bounds are kept, and each entry is in one batch or in one count of dropped entries"
    )
    func generatedSequences() {
        for seed in UInt64(1)...300 {
            var generator = SeededGenerator(seed: seed)
            var queue = LogQueue<Int>(
                maxEntries: Int.random(in: 1...20, using: &generator),
                maxBytes: Int.random(in: 1...400, using: &generator))
            var next = 0
            var expected = 0
            var dropped = 0
            func check(_ batch: LogQueue<Int>.Batch?) {
                guard let batch else { return }
                #expect(batch.entries.count <= queue.maxEntries, "seed \(seed)")
                // No entry is missing within a batch; the dropped entries came after the batch.
                #expect(batch.entries == Array(expected..<expected + batch.entries.count), "seed \(seed)")
                expected += batch.entries.count + batch.dropped
                dropped += batch.dropped
            }
            for _ in 0..<200 {
                if Int.random(in: 0..<8, using: &generator) == 0 {
                    check(queue.removeAll())
                } else {
                    queue.append(next, size: Int.random(in: 0...60, using: &generator))
                    next += 1
                }
            }
            check(queue.removeAll())
            #expect(expected == next, "seed \(seed)")
            #expect(queue.droppedTotal == dropped, "seed \(seed)")
            #expect(queue.removeAll() == nil, "seed \(seed)")
        }
    }

    @Test("An entry can replace the last entry, and the bounds still apply")
    func replaced() {
        var queue = LogQueue<Int>(maxBytes: 100)
        for number in 1...50 { queue.append(number, size: 60) { $0 > 0 } }
        #expect(queue.removeAll()?.entries == [50])
        queue.append(-1, size: 60)
        queue.append(1, size: 40) { $0 > 0 }
        queue.append(2, size: 30) { $0 > 0 }
        let batch = queue.removeAll()
        #expect(batch?.entries == [-1, 2] && batch?.dropped == 0)
        // An entry after dropped entries does not replace an entry before them.
        queue.append(1, size: 60)
        queue.append(-2, size: 60)
        queue.append(3, size: 10) { $0 > 0 }
        let other = queue.removeAll()
        #expect(other?.entries == [1] && other?.dropped == 2)
        #expect(queue.isEmpty && queue.droppedTotal == 2)
    }

    @Test("An entry larger than the queue is dropped, and the queue accepts entries again after the batch is removed")
    func tooLarge() {
        var queue = LogQueue<String>(maxEntries: 10, maxBytes: 100)
        queue.append("large", size: 101)
        queue.append("small", size: 1)
        let batch = queue.removeAll()
        #expect(batch?.entries == [] && batch?.dropped == 2)
        queue.append("small", size: 1)
        #expect(queue.removeAll()?.entries == ["small"])
    }
}
