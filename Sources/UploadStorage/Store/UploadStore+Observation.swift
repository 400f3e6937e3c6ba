import SystemCalls

extension UploadStore {
    /// Reports every step to `observer` from now on, instead of to the previous observer.
    package func observe(by observer: any StoreObserver) { context.observer.withLock { $0 = observer } }

    /// The numbers of a storage that several servers share, even while it cannot be reached; nil for a data directory.
    package var sharedStatistics: SharedStorageStatistics? { configuration.sharedStatistics() }

    /// Returns the current numbers of the store; numbers that are not counted yet are nil. Only uploads in processing
    /// are counted by this call, so that its duration does not depend on the size of the store.
    ///
    /// - Throws: `superseded` once the store is closed; `io` if the catalog cannot be read.
    package func statistics() throws(StoreError) -> StoreStatistics {
        var statistics = StoreStatistics()
        let total = catalog.isShared ? try catalog.sharedUsage(of: nil).values.total : ledger.total
        statistics.processing = try catalog.processingCount()
        statistics.retained = try? context.area.retainedCount()
        if let total {
            statistics.receiving = max(0, total.uploads - statistics.processing)
            // Several stores do not count finished uploads, because counting rows takes time.
            statistics.complete = catalog.isShared ? nil : finished.complete
            statistics.invalid = catalog.isShared ? nil : finished.invalid
            statistics.publishedBytes = total.publishedBytes
            statistics.reservedBytes = total.reservedBytes
        }
        statistics.lost = finished.lost
        if configuration.shouldRecordEvents { statistics.events = eventStatistics }
        statistics.catalogBytes = try catalog.sizeInBytes()
        statistics.catalogChanges = catalog.statistics.changes
        statistics.catalogTransactions = catalog.statistics.transactions
        // The space of a shared storage has no limit that could be read.
        if !catalog.isShared, let space = try? area.space() {
            statistics.freeBytes = space.free
            statistics.capacityBytes = space.total
            statistics.minFreeBytes = configuration.effectiveMinFree(total: space.total)
        }
        return statistics
    }
}
