import SystemCalls

@testable import UploadStorage

/// A catalog in memory. Its count ends when the test calls ``endCount(_:)``, and it calls a closure of the test after
/// every removal.
final class CatalogDouble: UploadCatalog {
    private struct State {
        var outcomes: [Result<Void, StoreError>] = []
        var isStopped = false
        var afterRemoval: (@Sendable () -> Void)?
        var afterProcessing: (@Sendable () -> Void)?
        var counts = 0
        var closingTotals: CatalogTotals?
    }

    private let base: MemoryCatalog
    private let countsAtOpening: Bool
    private let state = Monitor(State())

    /// - Parameter countsAtOpening: whether the store must count the rows of the catalog, as after a crash.
    init(_ base: MemoryCatalog = MemoryCatalog(), countsAtOpening: Bool = false) {
        self.base = base
        self.countsAtOpening = countsAtOpening
    }

    var afterRemoval: (@Sendable () -> Void)? {
        get { state.withLock { $0.afterRemoval } }
        set { state.withLock { $0.afterRemoval = newValue } }
    }

    /// Called after the uploads in processing were listed.
    var afterProcessing: (@Sendable () -> Void)? {
        get { state.withLock { $0.afterProcessing } }
        set { state.withLock { $0.afterProcessing = newValue } }
    }

    /// The totals that ``close(saving:)`` received.
    var closingTotals: CatalogTotals? { state.withLock { $0.closingTotals } }

    /// The number of counts that were begun.
    var counts: Int { state.withLock { $0.counts } }

    /// Ends the count that waits, or the next count if no count waits.
    func endCount(_ error: StoreError? = nil) {
        state.withLock { $0.outcomes.append(error.map { .failure($0) } ?? .success(())) }
        state.notifyAll()
    }

    func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>] {
        let outcomes = base.commit(changes)
        for (change, outcome) in zip(changes, outcomes) {
            switch (change, outcome) {
            case (.delete, .success), (.removeFinished, .success): afterRemoval?()
            default: break
            }
        }
        return outcomes
    }

    var savedTotals: CatalogTotals? { countsAtOpening ? nil : base.savedTotals }

    func countTotals() throws(StoreError) -> CatalogTotals {
        let totals = try base.countTotals()
        state.withLock { $0.counts += 1 }
        let outcome = state.waitForever { state -> Result<Void, StoreError>? in
            if state.isStopped { return .failure(.superseded) }
            return state.outcomes.isEmpty ? nil : state.outcomes.removeFirst()
        }
        try outcome.get()
        return totals
    }

    func stopCounting() {
        state.withLock { $0.isStopped = true }
        state.notifyAll()
    }

    func close(saving totals: CatalogTotals?) {
        stopCounting()
        state.withLock { $0.closingTotals = totals }
        base.close(saving: totals)
    }

    var isVerificationNeeded: Bool { base.isVerificationNeeded }
    var damage: StoreError? { base.damage }
    func verify() throws(StoreError) { try base.verify() }
    func row(_ id: UploadID) throws(StoreError) -> CatalogRow? { try base.row(id) }
    func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow] {
        try base.rows(after: id, limit: limit)
    }
    func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID] {
        let page = try base.processing(after: id, limit: limit)
        afterProcessing?()
        return page
    }
    func processingCount() throws(StoreError) -> Int { try base.processingCount() }
    func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes] {
        try base.receiving(after: id, limit: limit)
    }
    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] { try base.expired(at: now, limit: limit) }
    func needsBlob(_ name: String) throws(StoreError) -> Bool { try base.needsBlob(name) }
    func file(_ name: String) throws(StoreError) -> FileRecord? { try base.file(name) }
    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] {
        try base.files(after: name, limit: limit)
    }
    func isExpiring(after time: Int64) throws(StoreError) -> Bool { try base.isExpiring(after: time) }
    func timeMark() throws(StoreError) -> LifetimeClock.Mark? { try base.timeMark() }
    func sizeInBytes() throws(StoreError) -> Int64 { try base.sizeInBytes() }
    func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] {
        try base.events(after: number, limit: limit)
    }
    func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] { try base.retriedEvents(limit: limit) }
    func hasEvent(_ number: Int64) throws(StoreError) -> Bool { try base.hasEvent(number) }
    func countEvents() throws(StoreError) -> OutboxStatistics { try base.countEvents() }
    func onEvents(_ body: @escaping @Sendable () -> Void) { base.onEvents(body) }
    var statistics: CatalogStatistics { base.statistics }
}
