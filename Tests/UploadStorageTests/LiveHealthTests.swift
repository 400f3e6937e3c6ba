import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct LiveHealthTests {
    @Test(
        "a store whose threads all wait is stuck; one of whose threads continues is not, however much work is queued",
        arguments: StoreKind.embedded)
    func stuck(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let store = fixture.store
        // The number of pieces of work that may end.
        let allowed = Monitor(0)
        let begun = Counter()
        for number in 1...40 {
            store.context.acknowledging.enqueue {
                begun.next()
                allowed.wait(until: SystemClock.deadline(in: .seconds(90))) { $0 >= number ? () : nil }
            }
        }
        let areWaiting: Bool? = pollUntil(within: .seconds(60)) { begun.value == 4 ? true : nil }
        #expect(areWaiting == true)
        #expect(store.liveHealth(until: SystemClock.deadline(in: .milliseconds(100))) == nil)
        let isDone = Monitor(false)
        let progress = try WorkerThread(name: "progress") {
            for number in 1...30
            where isDone.wait(until: SystemClock.deadline(in: .milliseconds(200)), { $0 ? () : nil }) == nil {
                allowed.withLock { $0 = number }
                allowed.notifyAll()
            }
        }
        #expect(store.liveHealth(until: SystemClock.deadline(in: .seconds(30)))?.isReady == true)
        isDone.withLock { $0 = true }
        isDone.notifyAll()
        progress.join()
        #expect(begun.value < 40)
        allowed.withLock { $0 = 40 }
        allowed.notifyAll()
    }
}
