import SystemCalls

/// A fixed set of threads that run pieces of work in the order in which they were added.
package final class WorkQueue: Sendable {
    private struct State {
        var work: [(@Sendable () -> Void)?] = []
        var next = 0
        var isClosed = false
    }

    private let state: Monitor<State>
    private let threads: [WorkerThread]

    package init(name: String, threads count: Int, shouldYield: Bool = false) throws(Errno) {
        let state = Monitor(State())
        var threads: [WorkerThread] = []
        do throws(Errno) {
            for _ in 0..<count {
                threads.append(
                    try WorkerThread(name: name, shouldYield: shouldYield) {
                        while let work = Self.next(in: state) { work() }
                    })
            }
        } catch {
            // The threads that were started must not wait without end.
            state.withLock { $0.isClosed = true }
            state.notifyAll()
            for thread in threads { thread.join() }
            throw error
        }
        self.state = state
        self.threads = threads
    }

    deinit { close() }

    /// Adds work without waiting. Returns false once the queue is closed.
    /// - Parameter isFirst: whether the work is done before all other work that is queued.
    @discardableResult
    package func enqueue(isFirst: Bool = false, _ work: @escaping @Sendable () -> Void) -> Bool {
        let accepted = state.withLock { state in
            if !state.isClosed { state.work.insert(work, at: isFirst ? state.next : state.work.count) }
            return !state.isClosed
        }
        state.notifyOne()
        return accepted
    }

    /// Accepts no more work, and ends the threads after the queued work.
    package func close() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
        for thread in threads { thread.join() }
    }

    private static func next(in state: Monitor<State>) -> (@Sendable () -> Void)? {
        state.waitForever { state -> (@Sendable () -> Void)?? in
            guard state.next < state.work.count else { return state.isClosed ? .some(nil) : nil }
            // The work is removed from the list, so that finished work keeps no upload in memory, and a queue that is
            // never empty does not grow.
            let work = state.work[state.next].take()
            state.next += 1
            if state.next * 2 > state.work.count {
                state.work.removeFirst(state.next)
                state.next = 0
            }
            return .some(work)
        }
    }
}
