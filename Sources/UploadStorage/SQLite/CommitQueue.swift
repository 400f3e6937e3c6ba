import SystemCalls

/// Changes on their way to the catalogue's thread, each with somebody who waits for it.
final class CommitQueue: Sendable {
    /// One change and, later, what became of it.
    final class Pending: Sendable {
        let change: CatalogueChange
        private let result = Monitor<Result<Void, StoreError>?>(nil)

        init(_ change: CatalogueChange) { self.change = change }

        func finish(_ outcome: Result<Void, StoreError>) {
            result.withLock { $0 = outcome }
            result.notifyAll()
        }

        fileprivate func wait() throws(StoreError) {
            try result.waitForever { (outcome: inout Result<Void, StoreError>?) in outcome }.get()
        }
    }

    private struct State {
        var pending: [Pending] = []
        var isClosed = false
        var statistics = CatalogueStatistics()
    }

    private let state = Monitor(State())

    /// Hands a change over and waits until it is durable.
    func commit(_ change: CatalogueChange) throws(StoreError) {
        let pending = Pending(change)
        let accepted = state.withLock { state in
            if state.isClosed { return false }
            state.pending.append(pending)
            return true
        }
        guard accepted else { throw .superseded }
        state.notifyAll()
        try pending.wait()
    }

    /// Everything that waits, in its order; nil once the queue is closed and empty.
    func next() -> [Pending]? {
        state.waitForever { state -> [Pending]?? in
            if state.pending.isEmpty { return state.isClosed ? .some(nil) : nil }
            defer { state.pending = [] }
            return state.pending
        }
    }

    func count(commits: Int) {
        state.withLock { state in
            state.statistics.transactions += 1
            state.statistics.commits += commits
        }
    }

    var statistics: CatalogueStatistics { state.withLock { $0.statistics } }

    func close() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
    }
}
