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
        if configuration.recordsEvents { statistics.events = eventStatistics }
        statistics.catalogBytes = try catalog.sizeInBytes()
        statistics.catalogChanges = catalog.statistics.commits
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

/// Receives the durations of the steps with which a store makes data durable. The store itself does not keep them.
///
/// The methods are called on the threads that perform the steps, possibly on several threads simultaneously, while no
/// lock of the store is held. They must not block, because a request waits for the step.
package protocol StoreObserver: Sendable {
    /// A step ended.
    /// - Parameters:
    ///   - nanoseconds: the duration, measured with the monotonic clock.
    ///   - isDone: `false` if the storage failed.
    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool)
}

/// A step of a store that makes data durable.
package enum DurableStep: String, Sendable, Hashable, CaseIterable {
    /// The bytes of one or several uploads reach stable storage (fdatasync(2), fsync(2) or syncfs(2)). The first step
    /// of a resumable upload also makes the name of its file in `uploads/` durable.
    case content
    /// The names of one or several published files reach stable storage, and their attributes if those are not durable
    /// yet (fsync(2) or syncfs(2)).
    case publication
    /// The offset of an upload is recorded in the catalog. The step ends when its transaction, which can contain other
    /// changes, is durable.
    case offset
}

/// The numbers of uploads, files and bytes in a store at one moment. After an unclean stop the store has to count them
/// first; until then, and if the count has failed, the numbers that depend on it are `nil`.
package struct StoreStatistics: Sendable, Hashable {
    /// Uploads that wait for content or for the request that completes them; `nil` until everything is counted.
    package var receiving: Int?
    /// Uploads whose processing or publication has begun and is not complete.
    package var processing = 0
    /// Retained requests whose outcome is unknown; nil if they cannot be counted.
    package var retained: Int?
    /// The numbers of events; nil if events are not recorded, or cannot be counted.
    package var events: OutboxStatistics?
    /// Finished uploads whose final response is kept; `nil` until everything is counted.
    package var complete: Int?
    /// Permanently unusable uploads that are kept; `nil` until everything is counted.
    package var invalid: Int?
    /// The number of uploads that have become invalid since the store was opened, because acknowledged bytes were
    /// missing.
    package var lost = 0
    /// Bytes of published files; `nil` until everything is counted.
    package var publishedBytes: Int64?
    /// Bytes that unfinished uploads reserve: the length of each, or its received bytes if the length is unknown; `nil`
    /// until everything is counted.
    package var reservedBytes: Int64?
    /// The size of the catalog in bytes.
    package var catalogBytes: Int64 = 0
    /// Changes that were made durable since the store was opened, and the transactions that they shared.
    package var catalogChanges = 0
    package var catalogTransactions = 0
    /// The free bytes and all bytes of the file system; `nil` if that is unknown.
    package var freeBytes: Int64?
    package var capacityBytes: Int64?
    /// Free bytes below which new uploads are refused; `nil` if that is unknown.
    package var minFreeBytes: Int64?

    package init() {}
}

/// A histogram as in Prometheus: the number of values up to each bound.
package struct Histogram: Sendable, Hashable {
    /// The bounds in ascending order.
    package let bounds: [Double]
    /// The number of values up to each bound and above the previous bound. Values above the last bound are only in
    /// `count`.
    package private(set) var counts: [Int]
    package private(set) var count = 0
    package private(set) var sum = 0.0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count)
    }

    /// Bounds in seconds for the durations of synchronization, from those of fast disks to those of failing disks.
    package static let storageSeconds = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]

    /// Bounds in seconds for the time until an application responds, or until a check has ended.
    package static let responseSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

    package mutating func observe(_ value: Double) {
        count += 1
        sum += value
        if let place = bounds.firstIndex(where: { value <= $0 }) { counts[place] += 1 }
    }

    /// The number of values up to each bound.
    package var cumulative: [(bound: Double, count: Int)] {
        var total = 0
        return zip(bounds, counts).map { bound, count in
            total += count
            return (bound, total)
        }
    }
}
