import SystemCalls

extension UploadStore {
    /// Calls `body` after each commit that has recorded events, on the thread of the commit. It must not block.
    package func onEvents(_ body: @escaping @Sendable () -> Void) { catalog.onEvents(body) }

    /// Returns at most `limit` events that are not set aside, in the order of their numbers, starting after `number`.
    package func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] {
        try catalog.events(after: number, limit: limit)
    }

    /// Returns at most `limit` events that were set aside and for which an operator has requested another attempt.
    package func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] {
        try catalog.retriedEvents(limit: limit)
    }

    /// Returns whether this event exists and is not set aside. An operator may have dropped it.
    package func hasEvent(_ number: Int64) throws(StoreError) -> Bool { try catalog.hasEvent(number) }

    /// Removes events that were delivered, and sets other events aside.
    package func updateEvents(delivered: [Int64], setAside: [Int64]) throws(StoreError) {
        var changes: [CatalogChange] = []
        if !delivered.isEmpty { changes.append(.outbox(.remove(delivered))) }
        if !setAside.isEmpty { changes.append(.outbox(.setAside(setAside))) }
        for outcome in catalog.commit(changes) { _ = try outcome.get() }
    }

    /// Drops the oldest events: those that are older than `time` (milliseconds since 1970), and those beyond the newest
    /// `count`. Each transaction drops at most 256, so that other changes do not wait long.
    /// - Parameter isOnlySetAside: whether the time applies only to events that are set aside.
    /// - Returns: the numbers of the dropped events.
    package func dropEvents(
        olderThan time: Int64, isOnlySetAside: Bool = false, keeping count: Int
    ) throws(StoreError) -> [Int64] {
        guard catalog.shouldDropEvents else { return [] }
        var dropped: [Int64] = []
        let counts = try catalog.countEvents()
        var surplus = (counts.waiting ?? 0) + counts.setAside - count
        while !registry.isClosed {
            let change: CatalogChange =
                surplus > 0
                ? .outbox(.drop(before: .max, limit: min(surplus, Self.droppedBatch), isOnlySetAside: false))
                : .outbox(.drop(before: time, limit: Self.droppedBatch, isOnlySetAside: isOnlySetAside))
            let batch = try catalog.commit(change).events
            dropped += batch
            surplus -= batch.count
            if batch.isEmpty { break }
        }
        context.eventCounts.withLock { $0.dropped += dropped.count }
        return dropped
    }

    private static let droppedBatch = 256

    /// Counts an attempt to deliver an event.
    package func countDelivery(succeeded isSuccessful: Bool) {
        context.eventCounts.withLock { counts in
            if isSuccessful { counts.delivered += 1 } else { counts.failedAttempts += 1 }
        }
    }

    /// The numbers of events; nil if the outbox cannot be read.
    package var eventStatistics: OutboxStatistics? {
        guard var statistics = try? catalog.countEvents() else { return nil }
        let counts = context.eventCounts.withLock { $0 }
        statistics.recorded = catalog.statistics.events
        statistics.delivered = counts.delivered
        statistics.failedAttempts = counts.failedAttempts
        statistics.dropped = counts.dropped
        return statistics
    }
}
