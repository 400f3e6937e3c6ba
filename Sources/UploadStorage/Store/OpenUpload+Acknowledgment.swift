import SystemCalls

/// Acknowledgments: received bytes become durable, and then the offset in the row.
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
