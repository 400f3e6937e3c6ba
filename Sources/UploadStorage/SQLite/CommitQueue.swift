import SystemCalls

/// The changes of the catalog that wait to be written. The first thread that adds a change commits it; the changes that
/// other threads add meanwhile are committed together, by one of these threads. So each thread waits only for the
/// commit of its own change, and no change is passed to a thread that does nothing else.
final class CommitQueue: Sendable {
    /// The outcome of a change.
    typealias Outcome = Result<RemovedRows, StoreError>

    /// A change whose thread waits.
    private final class Pending: Sendable {
        enum State {
            case waiting
            /// The thread has to commit the changes that wait.
            case leads
            case ended(Outcome)
        }

        let change: CatalogChange
        private let state = Monitor(State.waiting)

        init(_ change: CatalogChange) { self.change = change }

        func set(_ next: State) {
            state.withLock { $0 = next }
            state.notifyAll()
        }

        /// - Returns: the outcome; nil if this thread leads.
        func wait() -> Outcome? {
            state.waitForever { state -> Outcome?? in
                switch state {
                case .waiting: nil
                case .leads: .some(nil)
                case .ended(let outcome): outcome
                }
            }
        }
    }

    private struct State {
        var pending: [Pending] = []
        /// Whether a thread commits changes, or is about to do so.
        var isBusy = false
        /// The number of changes whose commit has begun.
        var begun = 0
        var isClosed = false
        /// The error with which all later changes fail, although the catalog is open; nil if there is none.
        var failure: StoreError?
        var isVerified = true
    }

    private let state = Monitor(State())

    /// Returns after the change is durable.
    /// - Parameter write: commits changes in one transaction, in their order, and returns the outcome of each. One
    ///   thread at a time calls it.
    func commit(
        _ change: CatalogChange, by write: ([CatalogChange]) -> [Outcome]
    ) throws(StoreError) -> RemovedRows {
        let own = Pending(change)
        let leads = try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            if let failure = state.failure { throw failure }
            state.pending.append(own)
            defer { state.isBusy = true }
            return !state.isBusy
        }
        if !leads, let outcome = own.wait() { return try outcome.get() }
        // The leader's change is the oldest.
        let outcome = commitBatch(by: write)
        var (isQuick, count) = (outcome.isQuick, 1)
        while isQuick, count < Self.maxBatches, isNeeded {
            isQuick = commitBatch(by: write).isQuick
            count += 1
        }
        passOn()
        return try outcome.first.get()
    }

    /// The maximum number of batches that one thread commits. After a batch that took longer than `quickTime`
    /// nanoseconds, another thread continues: waking that thread takes little time then.
    private static let (maxBatches, quickTime) = (8, Int64(300_000))

    private var isNeeded: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Commits all changes that wait.
    /// - Returns: the outcome of the oldest change.
    private func commitBatch(by write: ([CatalogChange]) -> [Outcome]) -> (first: Outcome, isQuick: Bool) {
        let begun = SystemClock.monotonicNanoseconds()
        let batch = state.withLock { state in
            defer { state.pending = [] }
            state.begun += state.pending.count
            return state.pending
        }
        let outcomes = write(batch.map(\.change))
        for (pending, outcome) in zip(batch, outcomes) { pending.set(.ended(outcome)) }
        return (outcomes[0], SystemClock.monotonicNanoseconds() - begun < Self.quickTime)
    }

    /// Makes the thread of the oldest waiting change the next one that commits.
    private func passOn() {
        let next = state.withLock { state -> Pending? in
            state.isBusy = !state.pending.isEmpty
            return state.pending.first
        }
        if let next { next.set(.leads) } else { state.notifyAll() }
    }

    /// Makes every later change fail.
    func fail(with error: StoreError) { state.withLock { $0.failure = $0.failure ?? error } }

    /// The error of ``fail(with:)``; nil if it was not called.
    var failure: StoreError? { state.withLock { $0.failure } }

    /// The number of changes whose commit has begun, and the number of waiting changes.
    var counts: (begun: Int, waiting: Int) { state.withLock { ($0.begun, $0.pending.count) } }

    /// Rejects all later changes, waits for those that were added before, and then runs `body`, once.
    /// - Parameter body: gets the value of ``isVerified``.
    func close(_ body: (Bool) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        state.waitForever { state -> Void? in state.isBusy ? nil : () }
        guard isFirst else { return }
        body(isVerified)
    }

    /// Whether the database is known to be intact. Set it before the queue is closed.
    var isVerified: Bool {
        get { state.withLock { $0.isVerified && $0.failure == nil } }
        set { state.withLock { $0.isVerified = newValue } }
    }
}
