import SystemCalls

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
    /// - Parameter use: until the acknowledgment ends, no second object for the same upload may exist.
    func enqueueAcknowledgment(_ use: UploadUse?) {
        let isQueued = context.acknowledging.enqueue { [self] in
            runQueuedAcknowledgment()
            withExtendedLifetime(use) {}
        }
        if !isQueued { update { $0.machine.withdrawQueuedAcknowledgment() } }
    }

    private func runQueuedAcknowledgment() {
        let work = monitor.withLock { state in Work(state.machine.runQueuedAcknowledgment(), state) }
        // A caller that waits for the offset gets the same error.
        if let work { _ = try? run(work, duringCallOf: nil) }
    }

    /// Synchronizes the bytes, commits the row, and then advances the durable offset.
    func run(_ work: Work, duringCallOf failingLease: Int64?) throws(StoreError) {
        let advance = work.advance
        if advance.hasNewBytes {
            monitor.withLock { $0.mayHaveRemovedBytes = false }
            try synchronize(work.blob, including: isTransient ? nil : .name, duringCallOf: failingLease)
        }
        do throws(StoreError) {
            if !isTransient {
                let change = CatalogChange.Advance(
                    id: id, epoch: advance.epoch, offset: advance.offset, length: advance.length,
                    digestStates: work.digestStates)
                _ = try context.observing(.offset) { () throws(StoreError) in try commit(.advance(change)) }
            }
        } catch {
            update { $0.machine.acknowledgmentFailed() }
            throw error
        }
        update { $0.machine.acknowledged(advance) }
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
            let isWaiting = state.waitingLease == lease
            if isWaiting { state.failure = (lease, failure) }
            return state.revoking { $0.synchronizationFailed(duringCallOf: isWaiting ? lease : failingLease) }
        }
        if mustNotify { revocation?() }
        return failure
    }
}
