import SystemCalls

extension UploadStore {
    /// Reports every step to `observer` from now on, and to no other one.
    package func observe(by observer: any StoreObserver) { context.observer.withLock { $0 = observer } }

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
