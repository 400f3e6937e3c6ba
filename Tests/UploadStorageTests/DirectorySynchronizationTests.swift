import Foundation
import SystemCalls
import Testing

@testable import UploadStorage

/// Threads that synchronize one directory at the same time share synchronizations.
@Suite(.timeLimit(.minutes(1))) struct DirectorySynchronizationTests {
    /// Synchronizations that wait until the test ends them.
    private final class Gate: Sendable {
        private let state = Monitor((begun: 0, ended: 0, failing: Set<Int>()))

        var begun: Int { state.withLock { $0.begun } }

        func fail(_ number: Int) { state.withLock { _ = $0.failing.insert(number) } }

        func endNext() {
            state.withLock { $0.ended += 1 }
            state.notifyAll()
        }

        func awaitBegin(_ number: Int) { state.waitForever { $0.begun >= number ? () : nil } }

        func synchronize() throws(Errno) {
            let number = state.withLock { state in
                state.begun += 1
                return state.begun
            }
            state.notifyAll()
            let hasFailed = state.waitForever { $0.ended >= number ? $0.failing.contains(number) : nil }
            if hasFailed { throw .noSpace }
        }
    }

    private let directories = DirectorySynchronization()
    private let gate = Gate()
    private let outcomes = Monitor<[Result<Void, Errno>]>([])

    /// Synchronizes the directory on another thread.
    private func start(_ inode: UInt64 = 1) throws -> WorkerThread {
        let epoch = directories.epoch
        let users = directories.users(of: inode)
        let thread = try WorkerThread(name: "synchronize") { [directories, gate, outcomes] in
            let outcome = Result { () throws(Errno) in
                try directories.synchronizeTogether(inode, since: epoch) { () throws(Errno) in try gate.synchronize() }
            }
            outcomes.withLock { $0.append(outcome) }
        }
        while directories.users(of: inode) == users { sched_yield() }
        return thread
    }

    private var failures: Int {
        outcomes.withLock { $0.count { if case .failure = $0 { true } else { false } } }
    }

    @Test("threads that wait during a synchronization share the next one, and nothing is kept afterwards")
    func sharing() throws {
        let first = try start()
        gate.awaitBegin(1)
        let waiting = try (0..<5).map { _ in try start() }
        #expect(gate.begun == 1)
        gate.endNext()
        first.join()
        gate.awaitBegin(2)
        // This thread has begun after the second synchronization.
        let last = try start()
        gate.endNext()
        for thread in waiting { thread.join() }
        gate.awaitBegin(3)
        gate.endNext()
        last.join()
        #expect(gate.begun == 3 && failures == 0)
        #expect(directories.isIdle)
    }

    @Test("synchronizations of other directories do not wait")
    func otherDirectories() throws {
        let first = try start(1)
        let second = try start(2)
        gate.awaitBegin(2)
        gate.endNext()
        gate.endNext()
        first.join()
        second.join()
        #expect(failures == 0 && directories.isIdle)
    }

    @Test("OFF-18: a failure reaches every thread whose change it may concern; later changes succeed")
    func failure() throws {
        gate.fail(2)
        let first = try start()
        gate.awaitBegin(1)
        let waiting = try (0..<3).map { _ in try start() }
        gate.endNext()
        first.join()
        #expect(failures == 0)
        gate.awaitBegin(2)
        // The change of this thread was made before the failure, so that its own synchronization proves nothing.
        let late = try start()
        gate.endNext()
        for thread in waiting { thread.join() }
        gate.awaitBegin(3)
        gate.endNext()
        late.join()
        #expect(failures == 4)
        let later = try start()
        gate.awaitBegin(4)
        gate.endNext()
        later.join()
        #expect(failures == 4 && directories.isIdle)
    }
}
