import SystemCalls

extension UploadStore {
    /// Tells `observer`, and nobody else any more, about every step from now on.
    package func observe(by observer: any StoreObserver) { self.observer.withLock { $0 = observer } }

    /// Runs a step and tells how long it took.
    func observing<Result, Failure: Error>(
        _ step: DurableStep, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let observer = observer.withLock({ $0 }) else { return try body() }
        let start = SystemClock.monotonicNanoseconds()
        var hasFailed = false
        defer { observer.observe(step, nanoseconds: SystemClock.monotonicNanoseconds() - start, isDone: !hasFailed) }
        do throws(Failure) {
            return try body()
        } catch {
            // That somebody else has the upload by now is no failure of the storage.
            hasFailed = (error as? StoreError)?.concernsOperator ?? true
            throw error
        }
    }

    /// What the store holds now. Takes no longer the more it holds, but for uploads in processing: what is not counted yet
    /// is left out.
    ///
    /// - Throws: `superseded` once the store is closed; `io` where the catalog cannot be read.
    package func statistics() throws(StoreError) -> StoreStatistics {
        var statistics = StoreStatistics()
        let total = ledger.total
        statistics.processing = try catalog.processingCount()
        if let total {
            statistics.receiving = max(0, total.uploads - statistics.processing)
            statistics.complete = finished.complete
            statistics.invalid = finished.invalid
            statistics.publishedBytes = total.publishedBytes
            statistics.reservedBytes = total.reservedBytes
        }
        statistics.lost = finished.lost
        statistics.catalogBytes = try catalog.sizeInBytes()
        statistics.catalogChanges = catalog.statistics.commits
        statistics.catalogTransactions = catalog.statistics.transactions
        if let space = try? area.space() {
            statistics.freeBytes = space.free
            statistics.capacityBytes = space.total
            statistics.minFreeBytes = configuration.effectiveMinFree(total: space.total)
        }
        return statistics
    }
}
