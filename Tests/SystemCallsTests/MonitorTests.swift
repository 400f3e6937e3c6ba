import Testing

@testable import SystemCalls

@Suite struct MonitorTests {
    @Test func aThreadWaitsForOtherThreads() throws {
        let monitor = Monitor(0)
        let threads = try (0..<4).map { _ in
            try WorkerThread(name: "adds-many-numbers") {
                for _ in 0..<1000 { monitor.withLock { $0 += 1 } }
                monitor.notifyAll()
            }
        }
        #expect(monitor.waitForever { $0 == 4000 ? "all" : nil } == "all")
        for thread in threads { thread.join() }
    }

    @Test func aDeadlineEndsTheWait() {
        let monitor = Monitor(false)
        let start = SystemClock.monotonicNanoseconds()
        let result = monitor.wait(until: start + 20_000_000) { $0 ? 1 : nil }
        #expect(result == nil)
        #expect(SystemClock.monotonicNanoseconds() - start >= 20_000_000)
        #expect(monitor.wait(until: 0) { $0 ? nil : 7 } == 7)
    }
}
