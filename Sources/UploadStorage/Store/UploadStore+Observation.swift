import SystemCalls

extension UploadStore {
    /// Reports every step to `observer` from now on, and to no other one.
    package func observe(by observer: any StoreObserver) { context.observer.withLock { $0 = observer } }

    /// What the store holds now. Takes no longer the more it holds, but for uploads in processing: what is not counted yet
    /// is left out.
    ///
    /// - Throws: `superseded` once the store is closed; `io` if the catalog cannot be read.
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

/// Receives how long a store's steps to durability took. The store itself keeps no numbers about them.
///
/// Calls come on the threads that do the steps, at the same time, with no lock of the store held. They must not block:
/// a request waits for the offset.
package protocol StoreObserver: Sendable {
    /// A step ended.
    /// - Parameters:
    ///   - nanoseconds: of the monotonic clock.
    ///   - isDone: `false` if the storage failed.
    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool)
}

/// What a store does before it says that something is durable.
package enum DurableStep: String, Sendable, Hashable, CaseIterable {
    /// The bytes of an upload reach stable storage (fdatasync(2)), and the first time their name, too.
    case content
    /// A published file, its name and its old name reach stable storage (fsync(2)).
    case publication
    /// The offset of an upload is in the catalog: from handing it over until its transaction, which it may share, is
    /// durable.
    case offset
}
