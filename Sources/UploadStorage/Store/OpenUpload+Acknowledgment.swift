import HTTPSemantics
import SystemCalls

// Received bytes become durable, and then the offset in the row.
extension OpenUpload {
    /// Waits until all received bytes and the length are durable, and returns the durable offset.
    func acknowledge(as lease: Int64) throws(StoreError) -> Int64 {
        var goal: Int64?
        while true {
            let step = monitor.waitForever { state -> Result<(UploadMachine.AcknowledgmentStep, Work?), StoreError>? in
                do throws(StoreError) {
                    let step = try state.machine.acknowledge(&goal, as: lease)
                    switch step {
                    case .wait:
                        state.waitingLease = lease
                        return nil
                    case .done:
                        state.waitingLease = nil
                        return .success((step, nil))
                    case .run(let advance): return .success((step, Work(advance, state)))
                    }
                } catch { return .failure(state.error(of: lease, error)) }
            }
            switch try step.get() {
            case (.done(let offset), _): return offset
            case (_, let work): if let work { try run(work, duringCallOf: lease) }
            }
        }
    }

    /// The input of one acknowledgment, copied with the lock held.
    struct Work {
        var advance: UploadMachine.Advance
        var blob: any Blob
        var digestStates: [[UInt8]]

        init?(_ advance: UploadMachine.Advance?, _ state: State) {
            guard let advance, let blob = state.blob else { return nil }
            self.advance = advance
            self.blob = blob
            digestStates = state.digests.isEmpty ? [] : state.digests.encodedStates
        }
    }

    /// Lets another thread run the acknowledgment that ``UploadMachine/queueAcknowledgment(as:)`` has queued.
    /// - Parameters:
    ///   - use: until the acknowledgment ends, no second object for the same upload may exist.
    ///   - waits: whether the acknowledgment may wait for others, to be committed together with them.
    func enqueueAcknowledgment(_ use: UploadUse?, waits: Bool = false) {
        let isQueued =
            waits
            ? context.gathering.add(self, use)
            : context.acknowledging.enqueue { [self] in
                Self.runQueuedAcknowledgments([self], context)
                withExtendedLifetime(use) {}
            }
        if !isQueued { update { $0.machine.withdrawQueuedAcknowledgment() } }
    }

    /// The time in nanoseconds for which an upload whose bytes are durable waits for those of other uploads.
    private static let maxWait: Int64 = 100_000_000

    /// Runs queued acknowledgments with one commit, or with more if the synchronizations are slow. The bytes of each
    /// upload are durable before the commit.
    static func runQueuedAcknowledgments(_ uploads: [OpenUpload], _ context: StoreContext) {
        var ready: [(upload: OpenUpload, work: Work)] = []
        var deadline: Int64 = 0
        for upload in uploads {
            if !ready.isEmpty, SystemClock.monotonicNanoseconds() >= deadline {
                record(ready, context)
                ready = []
            }
            // A caller that waits for the offset gets the same error.
            let work = upload.monitor.withLock { state in Work(state.machine.runQueuedAcknowledgment(), state) }
            guard let work, (try? upload.synchronize(work, duringCallOf: nil)) != nil else { continue }
            if ready.isEmpty { deadline = SystemClock.monotonicNanoseconds() + maxWait }
            ready.append((upload, work))
        }
        record(ready, context)
    }

    /// Commits the rows of bytes that are durable with one commit, and then advances the durable offsets.
    private static func record(_ ready: [(upload: OpenUpload, work: Work)], _ context: StoreContext) {
        guard ready.count > 1 else {
            for (upload, work) in ready { _ = try? upload.record(work) }
            return
        }
        let changes = ready.map { $0.upload.change($0.work) }
        let rows = zip(ready, changes).map { $0.upload.newRow(with: $1) }
        var commits: [Result<RemovedRows, StoreError>] = []
        _ = try? context.observing(.offset) { () throws(StoreError) in
            commits = context.catalog.commit(
                ready.indices.map { index in
                    ready[index].upload.reporting(rows[index].map { .insert($0) } ?? changes[index])
                })
            for case .failure(let error) in commits where error.concernsOperator { throw error }
        }
        for (index, (upload, work)) in ready.enumerated() {
            let isMade =
                rows[index].map {
                    (try? upload.inserted($0, with: changes[index], commits[index], confirmedBy: nil)) != nil
                } ?? ((try? commits[index].get()) != nil)
            upload.update { isMade ? $0.machine.acknowledged(work.advance) : $0.machine.acknowledgmentFailed() }
        }
    }

    /// Synchronizes the bytes, commits the row, and then advances the durable offset.
    func run(_ work: Work, duringCallOf failingLease: Int64?) throws(StoreError) {
        try synchronize(work, duringCallOf: failingLease)
        try record(work)
    }

    private func synchronize(_ work: Work, duringCallOf failingLease: Int64?) throws(StoreError) {
        guard work.advance.hasNewBytes else { return }
        monitor.withLock { $0.mayHaveRemovedBytes = false }
        try synchronize(work.blob, including: isTransient ? nil : .name, duringCallOf: failingLease)
    }

    /// Commits the row of bytes that are durable, and then advances the durable offset.
    private func record(_ work: Work) throws(StoreError) {
        do throws(StoreError) {
            if !isTransient {
                _ = try context.observing(.offset) { () throws(StoreError) in try commit(change(work)) }
            }
        } catch {
            update { $0.machine.acknowledgmentFailed() }
            throw error
        }
        update { $0.machine.acknowledged(work.advance) }
    }

    private func change(_ work: Work) -> CatalogChange {
        .advance(
            CatalogChange.Advance(
                id: id, epoch: work.advance.epoch, offset: work.advance.offset, length: work.advance.length,
                digestStates: work.digestStates))
    }

    /// - Parameter failingLease: the lease whose method throws the error, so that its owner needs no other notification
    ///   of the end of the lease; nil if there is no such lease.
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
        let (mustNotify, revocation) = update { state in
            state.blob = nil
            state.stagedDigests = nil
            let lease = state.machine.epoch
            // With a shared storage the holder of the lease looks for the failure while its client sends nothing.
            let needsNoCall = state.waitingLease == lease || context.catalog.isShared
            if needsNoCall { state.failure = (lease, failure) }
            return state.revoking { $0.synchronizationFailed(duringCallOf: needsNoCall ? lease : failingLease) }
        }
        if mustNotify { revocation?() }
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
            update { $0.mayHaveRow = true }
            try context.catalog.awaitOutcomes()
            guard let existing = try context.catalog.row(id) else { throw error }
            // This commit was made, or an earlier commit that seemed to have failed.
            noteRow(existing)
            return existing == row ? nil : try self.commit(change, naming, confirmedBy: isMade)
        }
    }

    /// The first row of the upload, with this change; nil if there is a row.
    func newRow(with change: CatalogChange) -> CatalogRow? {
        monitor.withLock { state in
            guard !state.machine.isRecorded, var row = state.row else { return nil }
            row.length = state.machine.length
            // A publication is decided after all received bytes were synchronized.
            if case .recordIntent = change { row = row.advanced(to: state.machine.received) }
            row.apply(change)
            return row
        }
    }

    /// Creates the row of an upload that is recorded late, with all received bytes, unless a publication is about to
    /// create it.
    func recordNow() throws(StoreError) {
        if isTransient { return }
        let work = monitor.waitForever { state -> Work?? in
            state.machine.acknowledgment == .running ? nil : .some(Work(state.machine.beginRecording(), state))
        }
        if let work { try run(work, duringCallOf: nil) }
    }

    /// The upload as clients may see it: an offset is reported only after there is a row.
    func reportableRecord() throws(StoreError) -> UploadRecord? {
        if isUnrecorded { try recordNow() }
        return monitor.withLock { isHeld($0) ? record($0) : nil }
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
        context.reporting(change) {
            let (row, length) = monitor.withLock { ($0.row, $0.machine.length) }
            guard let row else { return [] }
            switch change {
            case .insert(let first, let file):
                let length = length ?? (first.isUnfinished ? nil : first.offset)
                return [
                    isTransient ? nil : UploadEvent(.created, of: row, length: length),
                    UploadEvent(endOf: row, as: first.phase, length: length, file: file),
                ]
            case .complete(let completion):
                return [
                    UploadEvent(
                        endOf: row, as: .complete(completion.response), length: length ?? completion.offset,
                        file: completion.file)
                ]
            case .invalidate(let invalidation):
                return [UploadEvent(endOf: row, as: .invalid(reason: invalidation.reason), length: length)]
            case .recordFile(let file, _):
                return [response.flatMap { UploadEvent(endOf: row, as: .complete($0), length: file.size, file: file) }]
            default: return []
            }
        }
    }
}

extension StoreContext {
    /// Returns a change together with the events that report it, if events are recorded.
    func reporting(_ change: CatalogChange, _ events: () -> [UploadEvent?]) -> CatalogChange {
        guard configuration.recordsEvents else { return change }
        let events = events().compactMap { $0 }
        return events.isEmpty ? change : .reporting(change, events)
    }

    /// Returns the removal of the row of an upload, with the event that reports it; `nil`: it is not reported.
    func removal(of row: CatalogRow, epoch: Int64, as kind: UploadEvent.Kind?) -> CatalogChange.Removal {
        CatalogChange.Removal(
            id: row.id, epoch: epoch,
            event: configuration.recordsEvents ? kind.map { UploadEvent($0, of: row) } : nil)
    }
}
