import HTTPSemantics
import SystemCalls

// Received bytes become durable, and then the offset in the row.
extension OpenUpload {
    /// Waits until all received bytes and the length are durable, and returns the durable offset.
    func acknowledge(as lease: Int64) throws(StoreError) -> Int64 {
        var goal: Int64?
        while true {
            var recording: Recording?
            let step = try monitor.waitForever { (state) throws(StoreError) -> UploadMachine.AcknowledgmentStep? in
                let step = try state.machine.acknowledge(&goal, as: lease)
                if case .run(let advance) = step { recording = Recording(self, advance, &state) }
                return step == .wait ? nil : step
            }
            if case .done(let offset) = step { return offset }
            if let recording { try run(recording, duringCallOf: lease) }
        }
    }

    /// One acknowledgment: the bytes to synchronize, and the change that then records them in the row. It is made with the
    /// lock held.
    struct Recording {
        let upload: OpenUpload
        let advance: UploadMachine.Advance
        let blob: any Blob
        let change: CatalogChange
        /// The first row of the upload, which contains the change; nil if the upload has a row, or is a plain upload.
        let row: CatalogRow?

        init?(_ upload: OpenUpload, _ advance: UploadMachine.Advance?, _ state: inout State) {
            guard let advance, let blob = state.blob else { return nil }
            self.upload = upload
            self.advance = advance
            self.blob = blob
            change = .advance(
                CatalogChange.Advance(
                    id: upload.id, epoch: advance.epoch, offset: advance.offset, length: advance.length,
                    digestStates: state.digests.isEmpty ? [] : state.digests.encodedStates))
            row = upload.isTransient ? nil : state.newRow(with: change)
            if advance.hasNewBytes { state.canHaveRemovedBytes = false }
        }

        var commit: CatalogChange { upload.reporting(row.map { .insert($0) } ?? change) }

        /// - Parameter outcome: the outcome of ``commit``.
        func end(_ outcome: Result<RemovedRows, StoreError>) throws(StoreError) {
            guard let row else {
                _ = try outcome.get()
                return
            }
            _ = try upload.inserted(row, with: change, outcome, confirmedBy: nil)
        }
    }

    /// Lets another thread run the acknowledgment that ``UploadMachine/queueAcknowledgment(as:)`` has queued.
    /// - Parameters:
    ///   - use: kept until the acknowledgment ends, so that there is no second object for the same upload.
    ///   - queue: the threads that run it.
    func enqueueAcknowledgment(_ use: UploadUse?, on queue: WorkQueue) {
        let queuedAt = SystemClock.monotonicNanoseconds()
        let isQueued = queue.enqueue { [self] in
            Self.runQueuedAcknowledgments([self], queuedAt: queuedAt, context)
            withExtendedLifetime(use) {}
        }
        if !isQueued { update { $0.machine.withdrawQueuedAcknowledgment() } }
    }

    /// The maximum time in nanoseconds for which an upload whose bytes are durable waits until bytes of other uploads
    /// are durable, too.
    private static let maxWait: Int64 = 100_000_000

    /// Runs queued acknowledgments with one commit, or with more if the synchronizations are slow. The bytes of each
    /// upload are durable before the commit.
    /// - Parameter queuedAt: monotonic nanoseconds. If the storage has failed since then, so does the acknowledgment.
    static func runQueuedAcknowledgments(_ uploads: [OpenUpload], queuedAt: Int64, _ context: StoreContext) {
        var ready: [Recording] = []
        var deadline: Int64 = 0
        // Errors are not thrown here. A caller that waits for the offset gets the error of a synchronization, and repeats a
        // commit itself.
        for upload in uploads {
            if !ready.isEmpty, SystemClock.monotonicNanoseconds() >= deadline {
                _ = try? record(ready, context)
                ready = []
            }
            let recording = upload.monitor.withLock { state in
                Recording(upload, state.machine.runQueuedAcknowledgment(), &state)
            }
            guard let recording else { continue }
            if let error = recording.blob.failure(since: queuedAt) {
                _ = upload.synchronizationFailed(error, duringCallOf: nil)
                continue
            }
            guard (try? upload.synchronize(recording, duringCallOf: nil)) != nil else { continue }
            if ready.isEmpty { deadline = SystemClock.monotonicNanoseconds() + maxWait }
            ready.append(recording)
        }
        if !ready.isEmpty { _ = try? record(ready, context) }
    }

    /// Records durable bytes with one commit, and then advances the durable offsets.
    /// - Throws: the error of one of the uploads, if possible one that concerns the operator.
    private static func record(_ recordings: [Recording], _ context: StoreContext) throws(StoreError) {
        try context.observing(.offset) { () throws(StoreError) in
            var failure: StoreError?
            for (recording, outcome) in zip(recordings, context.catalog.commit(recordings.map(\.commit))) {
                do throws(StoreError) {
                    try recording.end(outcome)
                    recording.upload.update { $0.machine.acknowledged(recording.advance) }
                } catch {
                    recording.upload.update { $0.machine.acknowledgmentFailed() }
                    if failure == nil || error.isForOperator { failure = error }
                }
            }
            if let failure { throw failure }
        }
    }

    /// Synchronizes the bytes, commits the row, and then advances the durable offset.
    func run(_ recording: Recording, duringCallOf failingLease: Int64?) throws(StoreError) {
        try synchronize(recording, duringCallOf: failingLease)
        if isTransient {
            update { $0.machine.acknowledged(recording.advance) }
        } else {
            try Self.record([recording], context)
        }
    }

    private func synchronize(_ recording: Recording, duringCallOf failingLease: Int64?) throws(StoreError) {
        guard recording.advance.hasNewBytes else { return }
        try synchronize(recording.blob, including: isTransient ? nil : .name, duringCallOf: failingLease)
    }

    /// - Parameter failingLease: the lease whose method throws the error: its holder needs no other notification that
    ///   the lease has ended. Nil if there is no such lease.
    func synchronize(
        _ blob: any Blob, including detail: BlobDetail?, duringCallOf failingLease: Int64?
    ) throws(StoreError) {
        guard context.shouldSynchronize else { return }
        do throws(Errno) {
            try context.observing(.content) { () throws(Errno) in try blob.synchronize(including: detail) }
        } catch {
            throw synchronizationFailed(error, duringCallOf: failingLease)
        }
    }

    /// Ends the lease after the bytes could not be synchronized.
    func synchronizationFailed(_ error: Errno, duringCallOf failingLease: Int64?) -> StoreError {
        let failure = StoreError.failure(error, during: "synchronize the content of an upload")
        update {
            $0.machine.synchronizationFailed(
                failure, duringCallOf: failingLease, isAwaited: context.catalog.isShared)
        }
        return failure
    }
}

// The row: its creation by the first change, its other changes, and the events that report them.
extension OpenUpload {
    /// Commits a change of the row. If there is no row yet, commits the complete row with the change. No other change
    /// of the row may be in progress.
    /// - Parameters:
    ///   - naming: the name that the bytes get together with the change.
    ///   - isMade: whether the row contains the change. A commit that failed may have been made; then the failure is
    ///     ignored.
    /// - Returns: what the change removed or replaced; nil if the commit failed, but the change was made.
    @discardableResult
    func commit(
        _ change: CatalogChange, _ naming: CatalogChange.Naming? = nil,
        confirmedBy isMade: ((CatalogRow?) -> Bool)? = nil
    ) throws(StoreError) -> RemovedRows? {
        guard let row = newRow(with: change) else {
            let change = reporting(change, naming: naming)
            guard let isMade else { return try context.catalog.commit(change) }
            return try context.catalog.commit(change, of: id, confirmedBy: isMade)
        }
        var file: FileRecord?
        if case .complete(let completion) = change { file = completion.file }
        let commit = context.catalog.commit([reporting(.insert(row, file: file), naming: naming)])[0]
        return try inserted(row, with: change, commit, naming, confirmedBy: isMade)
    }

    private func reporting(_ change: CatalogChange, naming: CatalogChange.Naming?) -> CatalogChange {
        let change = reporting(change)
        return naming.map { .naming(change, $0) } ?? change
    }

    /// Called after the commit that creates the row with its first change.
    func inserted(
        _ row: CatalogRow, with change: CatalogChange, _ commit: Result<RemovedRows, StoreError>,
        _ naming: CatalogChange.Naming? = nil, confirmedBy isMade: ((CatalogRow?) -> Bool)?
    ) throws(StoreError) -> RemovedRows? {
        do throws(StoreError) {
            let removed = try commit.get()
            noteRow(row)
            return removed
        } catch {
            update { $0.machine.recordingFailed() }
            try context.catalog.awaitOutcomes()
            guard let existing = try context.catalog.row(id) else { throw error }
            // This commit was made, or an earlier commit that seemed to have failed.
            noteRow(existing)
            return existing == row ? nil : try self.commit(change, naming, confirmedBy: isMade)
        }
    }

    /// The first row of the upload, with this change; nil if there is a row.
    func newRow(with change: CatalogChange) -> CatalogRow? { monitor.withLock { $0.newRow(with: change) } }

    /// Creates the row of an upload that is recorded late, with all received bytes, unless a publication is about to
    /// create it.
    func recordNow() throws(StoreError) {
        if isTransient { return }
        let recording = monitor.waitForever { state -> Recording?? in
            if state.machine.acknowledgment == .running { return nil }
            return .some(Recording(self, state.machine.beginRecording(), &state))
        }
        if let recording { try run(recording, duringCallOf: nil) }
    }

    /// The upload as clients may see it: an offset is reported only after there is a row.
    /// - Returns: nil if the state in memory may not be current.
    func reportableRecord(shouldConfirmHold: Bool) throws(StoreError) -> UploadRecord? {
        if !isTransient && !hasRow { try recordNow() }
        let (current, fence) = monitor.withLock { state -> (UploadRecord?, Int64?) in
            guard dependsOnHold(state.machine) else { return (record(state), nil) }
            return (isHeld(state) ? record(state) : nil, state.fence)
        }
        if shouldConfirmHold, current != nil, let fence, try !confirmHold(fence) { return nil }
        return current
    }

    private func noteRow(_ row: CatalogRow) {
        update { $0.machine.record(offset: row.offset) }
        // The name of the bytes of a plain upload stays in `newBlobs`, because its row ends with its lease.
        if !isTransient { context.newBlobs.remove(row.blob) }
    }

    /// Returns a change of this upload together with the events that report it. The creation of a plain upload is not
    /// reported.
    /// - Parameter response: the final response, if the change does not contain it.
    func reporting(_ change: CatalogChange, _ response: Response? = nil) -> CatalogChange {
        context.reporting(change) { time in
            let (row, length) = monitor.withLock { ($0.row, $0.machine.length) }
            guard let row else { return [] }
            switch change {
            case .insert(let first, let file):
                let length = length ?? (first.isUnfinished ? nil : first.offset)
                return [
                    isTransient ? nil : UploadEvent(.created, of: row, at: time, length: length),
                    UploadEvent(endOf: row, as: first.phase, at: time, length: length, file: file),
                ]
            case .complete(let completion):
                return [
                    UploadEvent(
                        endOf: row, as: .complete(completion.response), at: time, length: length ?? completion.offset,
                        file: completion.file)
                ]
            case .invalidate(let invalidation):
                return [UploadEvent(endOf: row, as: .invalid(reason: invalidation.reason), at: time, length: length)]
            case .recordFile(let file, _):
                return [
                    response.flatMap {
                        UploadEvent(endOf: row, as: .complete($0), at: time, length: file.size, file: file)
                    }
                ]
            default: return []
            }
        }
    }
}

extension OpenUpload.State {
    /// The first row of the upload, with this change; nil if there is a row.
    func newRow(with change: CatalogChange) -> CatalogRow? {
        guard !machine.isRecorded, var row else { return nil }
        row.length = machine.length
        // A publication is decided after all received bytes were synchronized.
        if case .recordIntent = change { row = row.advanced(to: machine.received) }
        row.apply(change)
        return row
    }
}

extension StoreContext {
    /// Returns a change together with the events that report it, if events are recorded.
    /// - Parameter events: returns the events for the current time.
    func reporting(_ change: CatalogChange, _ events: (_ time: Int64) -> [UploadEvent?]) -> CatalogChange {
        guard configuration.shouldRecordEvents else { return change }
        let events = events(timeOfEvents).compactMap { $0 }
        return events.isEmpty ? change : .reporting(change, events)
    }

    /// The change of the catalog that removes a row, with the event that reports it.
    func rowRemoval(for removal: OpenUpload.Removal) -> CatalogChange.Removal {
        let kind = configuration.shouldRecordEvents ? removal.kind : nil
        return CatalogChange.Removal(
            id: removal.row.id, epoch: removal.epoch,
            event: kind.map { UploadEvent($0, of: removal.row, at: timeOfEvents) })
    }

    /// The current time in milliseconds since 1970. Servers that share a catalog have the same clock.
    private var timeOfEvents: Int64 { configuration.clock().wall / 1_000_000 }
}
