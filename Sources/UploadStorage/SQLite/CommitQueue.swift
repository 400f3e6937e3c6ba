import SystemCalls

/// The queue of changes for the thread that writes the catalog. Each thread that adds a change waits until the change
/// is durable.
final class CommitQueue: Sendable {
    /// A change and, later, its outcome.
    final class Pending: Sendable {
        let change: CatalogChange
        private let result = Monitor<Outcome?>(nil)

        init(_ change: CatalogChange) { self.change = change }

        func finish(_ outcome: Outcome) {
            result.withLock { $0 = outcome }
            result.notifyAll()
        }

        fileprivate func wait() throws(StoreError) -> RemovedUploads {
            try result.waitForever { (outcome: inout Outcome?) in outcome }.get()
        }
    }

    /// The outcome of a change.
    typealias Outcome = Result<RemovedUploads, StoreError>

    private struct State {
        var pending: [Pending] = []
        /// The number of changes that the writer has received.
        var received = 0
        var isClosed = false
        /// The error with which all later changes fail, although the catalog is open; nil if there is none.
        var failure: StoreError?
        var finalTotals: CatalogTotals?
        var isVerified = true
        var statistics = CatalogStatistics()
    }

    private let state = Monitor(State())

    /// Adds a change to the queue and waits until it is durable.
    func commit(_ change: CatalogChange) throws(StoreError) -> RemovedUploads {
        let pending = Pending(change)
        let refusal = state.withLock { state -> StoreError? in
            if state.isClosed { return .superseded }
            if let failure = state.failure { return failure }
            state.pending.append(pending)
            return nil
        }
        if let refusal { throw refusal }
        state.notifyAll()
        return try pending.wait()
    }

    /// Makes every later change fail.
    func fail(with error: StoreError) { state.withLock { $0.failure = $0.failure ?? error } }

    /// The error of ``fail(with:)``; nil if it was not called.
    var failure: StoreError? { state.withLock { $0.failure } }

    /// Returns all waiting changes in their order; nil once the queue is closed and empty.
    func next() -> [Pending]? {
        state.waitForever { state -> [Pending]?? in
            if state.pending.isEmpty { return state.isClosed ? .some(nil) : nil }
            defer { state.pending = [] }
            state.received += state.pending.count
            return state.pending
        }
    }

    func count(commits: Int) {
        state.withLock { state in
            state.statistics.transactions += 1
            state.statistics.commits += commits
        }
    }

    /// The number of changes that the writer has received, and the number of waiting changes.
    var counts: (received: Int, waiting: Int) { state.withLock { ($0.received, $0.pending.count) } }

    var statistics: CatalogStatistics { state.withLock { $0.statistics } }

    /// - Parameter totals: see ``UploadCatalog/close(saving:)``.
    func close(saving totals: CatalogTotals?) {
        state.withLock { state in
            if !state.isClosed { state.finalTotals = totals }
            state.isClosed = true
        }
        state.notifyAll()
    }

    /// Whether the database is known to be intact. It must be set before the queue is closed.
    var isVerified: Bool {
        get { state.withLock { $0.isVerified && $0.failure == nil } }
        set { state.withLock { $0.isVerified = newValue } }
    }

    /// The totals of ``close(saving:)``; nil if there are none.
    var finalTotals: CatalogTotals? { state.withLock { $0.failure == nil ? $0.finalTotals : nil } }
}
