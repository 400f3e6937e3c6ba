import SystemCalls

/// Work that takes little longer for many requests than for one, such as a synchronization. The first thread that adds
/// a request does the work; the requests that other threads add meanwhile are served together, by one of these threads.
/// So each thread waits only for the outcome of its own requests, and no request is passed to a thread that does
/// nothing else.
package final class SharedWork<Request: Sendable, Outcome: Sendable>: Sendable {
    /// The requests of a thread that waits.
    private final class Waiter: Sendable {
        enum State {
            case waiting
            /// The thread has to serve all waiting requests.
            case leads
            case ended([Outcome])
        }

        let requests: [Request]
        private let state = Monitor(State.waiting)

        init(_ requests: [Request]) { self.requests = requests }

        func set(_ next: State) {
            state.withLock { $0 = next }
            state.notifyAll()
        }

        /// - Returns: the outcomes; nil if this thread leads.
        func wait() -> [Outcome]? {
            state.waitForever { state -> [Outcome]?? in
                switch state {
                case .waiting: nil
                case .leads: .some(nil)
                case .ended(let outcomes): outcomes
                }
            }
        }
    }

    private struct State {
        var waiters: [Waiter] = []
        /// Whether a thread begins to serve requests, or will do so soon. The outcomes of earlier requests may not be
        /// known yet.
        var isBusy = false
        /// The number of requests that are served or were served.
        var begun = 0
        var isClosed = false
    }

    private enum Turn {
        case leads
        case waits(Waiter)
        case isClosed
    }

    private let state = Monitor(State())

    package init() {}

    /// Serves requests, together with those of other threads.
    /// - Parameters:
    ///   - begin: begins to serve requests. One thread at a time calls it.
    ///   - end: returns the outcome of each request, in the same order. Meanwhile another thread may call `begin`.
    /// - Returns: the outcome of each request; nil if ``close()`` was called before.
    package func run<Begun>(
        _ requests: [Request], by begin: ([Request]) -> Begun, then end: (Begun) -> [Outcome]
    ) -> [Outcome]? {
        let turn = state.withLock { state -> Turn in
            if state.isClosed { return .isClosed }
            let waiter = Waiter(requests)
            state.waiters.append(waiter)
            defer { state.isBusy = true }
            return state.isBusy ? .waits(waiter) : .leads
        }
        switch turn {
        case .isClosed: return nil
        case .leads: break
        case .waits(let waiter): if let outcomes = waiter.wait() { return outcomes }
        }
        // The requests of this thread are the oldest.
        var own: [Outcome]?
        for count in 1... {
            // Other threads that are ready to run can now add requests, which are then served together with these. A thread
            // that adds several requests has gathered them already.
            if requests.count == 1 { WorkerThread.yieldProcessor() }
            let waiters = takeWaiters()
            let started = SystemClock.monotonicNanoseconds()
            let begun = begin(waiters.count == 1 ? waiters[0].requests : waiters.flatMap(\.requests))
            let continues = SystemClock.monotonicNanoseconds() - started < Self.quickTime && count < Self.maxBatches
            let isLast = !(continues && isNeeded)
            if isLast { passOn() }
            var outcomes = end(begun)[...]
            for waiter in waiters {
                let part = Array(outcomes.prefix(waiter.requests.count))
                outcomes = outcomes.dropFirst(part.count)
                if own == nil { own = part } else { waiter.set(.ended(part)) }
            }
            if isLast { break }
        }
        return own
    }

    /// Serves requests whose outcomes are known when `work` returns.
    package func run(_ requests: [Request], by work: ([Request]) -> [Outcome]) -> [Outcome]? {
        run(requests, by: work, then: { $0 })
    }

    /// The maximum number of batches that one thread begins. If the beginning of a batch lasts longer than `quickTime`
    /// nanoseconds, another thread begins the next batch: compared with that time, waking a thread is fast.
    private static var maxBatches: Int { 8 }
    private static var quickTime: Int64 { 300_000 }

    private var isNeeded: Bool { state.withLock { !$0.waiters.isEmpty } }

    private func takeWaiters() -> [Waiter] {
        state.withLock { state in
            defer { state.waiters = [] }
            state.begun += state.waiters.reduce(0) { $0 + $1.requests.count }
            return state.waiters
        }
    }

    /// Makes the thread that waits longest the next one that serves requests.
    private func passOn() {
        let next = state.withLock { state -> Waiter? in
            state.isBusy = !state.waiters.isEmpty
            return state.waiters.first
        }
        if let next { next.set(.leads) } else { state.notifyAll() }
    }

    /// The number of requests that are served or were served, and the number of waiting requests.
    package var counts: (begun: Int, waiting: Int) {
        state.withLock { state in (state.begun, state.waiters.reduce(0) { $0 + $1.requests.count }) }
    }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Rejects all later requests, and waits until those that were added before have begun. If `run` has a separate
    /// `end`, the last call of it may still be running.
    /// - Returns: whether this is the first call.
    package func close() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        state.waitForever { state -> Void? in state.isBusy ? nil : () }
        return isFirst
    }
}
