import SystemCalls

extension UploadStore {
    /// The smallest limit for the number of rows that one transaction removes. It is small, so that other changes in the
    /// transaction do not wait long.
    static let minRemovalBatch = 64
    /// The largest limit, because all uploads of a transaction are in memory at the same time.
    private static let maxRemovalBatch = 4096
    /// The pause after a batch, as a multiple of its duration, and the maximum pause in nanoseconds.
    private static let removalPause: Int64 = 4
    private static let maxPause: Int64 = 100_000_000
    private static let processingPage = 200
    /// The maximum number of unfinished and of finished uploads whose expiry one transaction limits.
    static let expiryBatch = 256
    /// The pause in nanoseconds after an interrupted upload could not be completed: the first pause, and the maximum.
    private static let settlingPauses: ClosedRange<Int64> = 1_000_000_000...60_000_000_000
    /// The time in nanoseconds for which one ``sweepPart()`` inspects the store.
    private static let inspectionTime: Int64 = 200_000_000

    /// Removes expired uploads, completes interrupted publications, and continues to check for missing bytes, bytes
    /// that belong to no upload, and files that were removed by hand. The checks take about 200 ms of a call. The other
    /// steps run to their ends. Call this method about once a second. Other work can run at the same time.
    package func sweepPart() -> SweepReport {
        sweep(isComplete: false) { inspection, report in
            let end = SystemClock.monotonicNanoseconds() + Self.inspectionTime
            while inspect(&inspection, &report), SystemClock.monotonicNanoseconds() < end {}
        }
    }

    /// Does the same as ``sweepPart()``, and checks the complete store once.
    package func sweep() -> SweepReport {
        sweep(isComplete: true) { inspection, report in
            inspection.stage = .uploads(after: nil)
            while inspect(&inspection, &report) {}
        }
    }

    /// Does the common part of all sweeps, and then calls `inspectStore`.
    private func sweep(
        isComplete: Bool, _ inspectStore: (inout StoreInspection, inout SweepReport) -> Void
    ) -> SweepReport {
        inspection.withLock { inspection in
            var report = SweepReport()
            report.clockJump = observeClock()
            report.failures = unreported.withLock { errors in
                defer { errors = [] }
                return errors
            }
            if registry.isClosed { return report }
            context.nameIndexes.removeUnused(at: SystemClock.monotonicNanoseconds())
            reportCatalogDamage()
            if isComplete || SystemClock.monotonicNanoseconds() >= inspection.nextSettlingTime {
                settleInterrupted(&inspection, &report)
            }
            // The end of the store waits for the sweep, and each step for a database that does not respond.
            if !registry.isClosed { removeUnreported(&report) }
            if !registry.isClosed { limitExpiry(&report) }
            if !registry.isClosed { sweepExpired(&report) }
            if !registry.isClosed { inspectStore(&inspection, &report) }
            return report
        }
    }

    /// Removes rows that were created although their creation was reported as failed.
    private func removeUnreported(_ report: inout SweepReport) {
        var failure: StoreError?
        for removal in context.failedRemovals.removeAll() {
            do throws(StoreError) {
                if failure == nil, !registry.isClosed {
                    try context.removeRow(removal)
                    context.discard(removal.row.blob)
                    continue
                }
            } catch .heldElsewhere {
                // A client has continued the upload.
                continue
            } catch { failure = error }
            context.failedRemovals.add(removal)
        }
        if let failure, !failure.isAboutChangedUpload { report.failures.append(failure) }
    }

    /// Completes uploads whose publication or processing was interrupted after it was recorded, and which no request
    /// uses.
    private func settleInterrupted(_ inspection: inout StoreInspection, _ report: inout SweepReport) {
        let failures = report.failures.count
        do throws(StoreError) {
            var last: UploadID?
            while true {
                let page = try catalog.processing(after: last, limit: Self.processingPage)
                guard let next = page.last else { break }
                for id in page where registry.current(id) == nil {
                    if registry.isClosed { return }
                    settleInterrupted(id, &report)
                }
                last = next
            }
        } catch {
            report.failures.append(error)
        }
        if report.failures.count == failures {
            (inspection.settlingPause, inspection.nextSettlingTime) = (0, 0)
        } else {
            let pause = max(Self.settlingPauses.lowerBound, 2 * inspection.settlingPause)
            inspection.settlingPause = min(pause, Self.settlingPauses.upperBound)
            inspection.nextSettlingTime = SystemClock.monotonicNanoseconds() + inspection.settlingPause
        }
    }

    private func settleInterrupted(_ id: UploadID, _ report: inout SweepReport) {
        do throws(StoreError) {
            let phase = try registry.withUpload(id) { (upload) throws(StoreError) in
                try upload.claim(principal: nil, until: SystemClock.deadline(in: .zero)) { $0.machine.phase }
            }
            if case .complete = phase { report.settled += 1 }
        } catch {
            if !error.isAboutChangedUpload && !registry.isClosed { report.failures.append(error) }
        }
    }

    // MARK: Expiry

    /// Limits the expiry of uploads that were created or completed while the clock for lifetimes was wrong
    /// (``ClockObservation/hasLateExpiries``), because they would be kept too long. If this fails, the next sweep
    /// repeats it.
    private func limitExpiry(_ report: inout SweepReport) {
        guard context.clockObservation.withLock({ $0.hasLateExpiries }) else { return }
        do throws(StoreError) {
            while true {
                // The limit is computed again for each batch. Otherwise uploads that are created during the loop would
                // exceed it, and the loop would not end.
                let limit = time + max(configuration.lifetime, configuration.keepCompleted).wholeSeconds
                guard try catalog.isExpiring(after: limit) else { break }
                let begun = SystemClock.monotonicNanoseconds()
                try catalog.commit(.limitExpiry(to: limit, limit: Self.expiryBatch))
                if pauseAfterBatch(begunAt: begun) { return }
            }
            context.clockObservation.withLock { $0.hasLateExpiries = false }
        } catch {
            report.failures.append(error)
        }
    }

    private func sweepExpired(_ report: inout SweepReport) {
        guard let now = expiryTime else { return }
        do throws(StoreError) {
            try removeFinished(expiredBy: now, &report)
            try removeUnfinished(expiredBy: now, &report)
        } catch {
            report.failures.append(error)
        }
    }

    /// Removes finished uploads that have expired. A request that is reading such an upload continues to read it from
    /// memory.
    private func removeFinished(expiredBy now: Int64, _ report: inout SweepReport) throws(StoreError) {
        var limit = Self.minRemovalBatch
        while true {
            let changes = catalog.statistics.changes
            let begun = SystemClock.monotonicNanoseconds()
            let removed = try catalog.commit(.removeFinished(expiredBy: now, limit: limit))
            finished.remove(removed)
            report.expired += removed.finished
            if removed.finished < limit || pauseAfterBatch(begunAt: begun) { return }
            limit = removalLimit(since: changes)
        }
    }

    /// Returns the number of rows that the next transaction removes. Every new upload is at least one change, so at
    /// least as many rows are removed as were added meanwhile.
    /// - Parameter changes: the number of changes when the last batch began.
    private func removalLimit(since changes: Int) -> Int {
        min(max(Self.minRemovalBatch, catalog.statistics.changes - changes), Self.maxRemovalBatch)
    }

    /// Pauses after a batch, so that most transactions are free for waiting requests.
    /// - Returns: whether the store was closed meanwhile.
    private func pauseAfterBatch(begunAt begun: Int64) -> Bool {
        let duration = SystemClock.monotonicNanoseconds() - begun
        return registry.waitForClosing(nanoseconds: min(Self.removalPause * duration, Self.maxPause))
    }

    /// An upload that is being removed, and its use, which lasts until the removal ends.
    private typealias Expiring = (use: UploadUse, removal: OpenUpload.Removal)

    private func removeUnfinished(expiredBy now: Int64, _ report: inout SweepReport) throws(StoreError) {
        var failed: Set<UploadID> = []
        var limit = Self.minRemovalBatch
        while true {
            let changes = catalog.statistics.changes
            let ids = try catalog.expired(at: now, limit: limit + failed.count)
            let due = ids.filter { !failed.contains($0) }
            if due.isEmpty || registry.isClosed { return }
            var batch: [Expiring] = []
            var others: [UploadID] = []
            for id in due {
                do throws(StoreError) {
                    let use = try registry.use(id)
                    if let removal = try use.upload.beginRemoval(ifExpiredBy: now) {
                        batch.append((use, removal))
                    } else {
                        others.append(id)
                    }
                } catch {
                    failed.insert(id)
                    if !error.isAboutChangedUpload { report.failures.append(error) }
                }
            }
            let begun = SystemClock.monotonicNanoseconds()
            let removed = removeTogether(batch, &report)
            if pauseAfterBatch(begunAt: begun) { return }
            if !removed { failed.formUnion(batch.map(\.use.upload.id)) }
            for id in others where !removeAlone(id, expiredBy: now, &report) { failed.insert(id) }
            limit = removalLimit(since: changes)
        }
    }

    /// Removes uploads in one transaction, or, if another store holds one of them, each in its own. Returns whether all
    /// were removed.
    private func removeTogether(_ batch: [Expiring], _ report: inout SweepReport) -> Bool {
        guard !batch.isEmpty else { return true }
        do throws(StoreError) {
            try catalog.commit(.delete(batch.map { context.rowRemoval(for: $0.removal) }))
        } catch {
            if error == .heldElsewhere && batch.count > 1 {
                return batch.reduce(true) { removeTogether([$1], &report) && $0 }
            }
            for (use, _) in batch { use.upload.preparationFailed() }
            if !error.isAboutChangedUpload { report.failures.append(error) }
            return false
        }
        for (use, removal) in batch { use.upload.endRemoval(removal) }
        report.expired += batch.count
        report.unfinished += batch.count
        return true
    }

    /// Removes an upload that ``OpenUpload/beginRemoval(ifExpiredBy:)`` could not remove at once: waits for requests that
    /// use it, and first completes an interrupted publication.
    /// - Returns: false if the target processes the upload, its expiry is later now, or the removal fails.
    private func removeAlone(_ id: UploadID, expiredBy now: Int64, _ report: inout SweepReport) -> Bool {
        do throws(StoreError) {
            var isUnfinished = false
            let isRemoved = try registry.withUpload(id) { (upload) throws(StoreError) in
                try upload.remove(principal: nil, until: SystemClock.deadline(in: .zero), as: .expired) { record in
                    isUnfinished = record.phase == .receiving || record.phase == .processing
                    return record.expiresAt.map { $0 <= now } ?? false
                }
            }
            // Nil if the target processes the upload; false if its expiry is later now.
            guard isRemoved == true else { return false }
            report.expired += 1
            report.unfinished += isUnfinished ? 1 : 0
            return true
        } catch {
            if !error.isAboutChangedUpload { report.failures.append(error) }
            return false
        }
    }
}

extension StoreError {
    /// Whether a request or another store uses or has removed the upload, so the sweep has nothing to do.
    fileprivate var isAboutChangedUpload: Bool { self == .notFound || self == .heldElsewhere }
}

/// The results of a sweep.
package struct SweepReport: Sendable, Hashable {
    /// The number of expired uploads that were removed, including complete and invalid uploads.
    package var expired = 0
    /// The number of unfinished uploads among the expired uploads.
    package var unfinished = 0
    /// The number of removed blobs that belonged to no upload.
    package var orphans = 0
    /// The number of records that were removed because their file no longer exists.
    package var missingFiles = 0
    /// The number of uploads whose interrupted publication or processing was completed.
    package var settled = 0
    /// Seconds by which the wall clock jumped since the last sweep, negative for a jump backward; nil if it did not
    /// jump. Lifetimes are not affected.
    package var clockJump: Int64?
    /// The errors of uploads and files that could not be removed.
    package var failures: [StoreError] = []

    package init() {}
}
