import Glibc
import SystemCalls
import Testing

@Suite struct ThreadSchedulingTests {
    @Test("a thread that yields to others has another policy, until this is revoked, and the same niceness")
    func policy() throws {
        let found = Monitor<[Int32]>([])
        let thread = try WorkerThread(name: "scheduling") {
            let niceness = nice(1)
            var values = [sched_getscheduler(0)]
            for yields in [true, false] {
                WorkerThread.setYieldsToOthers(yields)
                values += [sched_getscheduler(0), nice(0) - niceness]
            }
            found.withLock { [values] in $0 = values }
        }
        thread.join()
        let batch: Int32 = 3
        #expect(found.withLock { $0 } == [SCHED_OTHER, batch, 0, SCHED_OTHER, 0])
    }
}
