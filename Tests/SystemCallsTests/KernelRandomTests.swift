import SystemCalls
import Testing

@Suite("KernelRandom")
struct KernelRandomTests {
    @Test("Numbers are different, including those of several threads")
    func distinctNumbers() throws {
        let numbers = Monitor(Set<UInt64>())
        let threads = try (0..<4).map { index in
            try WorkerThread(name: "random-\(index)") {
                let drawn = (0..<1000).map { _ in KernelRandom().next() }
                numbers.withLock { $0.formUnion(drawn) }
            }
        }
        for thread in threads { thread.join() }
        #expect(numbers.withLock { $0.count } == 4000)
    }

    @Test("Every bit is set in some numbers and not in others")
    func allBits() {
        let numbers = (0..<200).map { _ in KernelRandom().next() }
        #expect(numbers.reduce(0, |) == .max)
        #expect(numbers.reduce(.max, &) == 0)
    }
}
