import SystemCalls

extension OpenUpload {
    /// What one acknowledgment covers, taken with the lock held.
    private struct Snapshot {
        var blob: any Blob
        var epoch: Int64
        var offset: Int64
        var hasNewBytes: Bool
        var length: Int64?
        var digestStates: [[UInt8]]
    }

    /// Returns once all that has been received by now is durable, and the length, with the durable offset.
    ///
    /// - Parameter outlivesLease: whether to go on when the lease is lost on the way. What was received while it was held
    ///   is there all the same.
    func acknowledge(as epoch: Int64, outlivesLease: Bool = false) throws(StoreError) -> Int64 {
        enum Step {
            case done(Int64)
            case run(Snapshot)
            case refused(StoreError)
        }
        var goal: Int64?
        while true {
            let step = monitor.waitForever { state -> Step? in
                let refusal = state.refusal(epoch)
                if let refusal, !outlivesLease || refusal != .superseded || state.row == nil {
                    return .refused(refusal)
                }
                // After a failed synchronization less is received than was: what is gone cannot be waited for.
                let wanted = min(goal ?? state.received, state.received)
                goal = wanted
                if state.durable >= wanted && (state.lengthIsRecorded || refusal != nil) { return .done(state.durable) }
                if state.acknowledgment == .running { return nil }
                guard let snapshot = makeSnapshot(state) else {
                    return .refused(refusal ?? .invalidState("the bytes are gone"))
                }
                state.acknowledgment = .running
                return .run(snapshot)
            }
            switch step {
            case .done(let offset): return offset
            case .refused(let error): throw error
            case .run(let snapshot): try run(snapshot, askedBy: epoch)
            }
        }
    }

    /// Has it done on another thread. Does nothing while one is on its way.
    func startAcknowledging(as epoch: Int64) {
        guard !isTransient else { return }
        let isNeeded = monitor.withLock { state in
            guard state.refusal(epoch) == nil, state.acknowledgment == .idle, state.activity == .idle,
                state.received > state.durable || !state.lengthIsRecorded
            else { return false }
            state.acknowledgment = .queued
            return true
        }
        guard isNeeded else { return }
        // The job keeps the upload in memory: a second object for the same upload must never exist beside this one.
        store.registry.retain(self)
        let accepted = store.acknowledging.enqueue { [self] in
            runQueued()
            store.registry.drop(self)
        }
        if !accepted {
            update { if $0.acknowledgment == .queued { $0.acknowledgment = .idle } }
            store.registry.drop(self)
        }
    }

    private func runQueued() {
        let snapshot = monitor.withLock { state -> Snapshot? in
            guard state.acknowledgment == .queued, let snapshot = makeSnapshot(state) else { return nil }
            state.acknowledgment = .running
            return snapshot
        }
        // Whoever waits for the offset runs into the same error.
        if let snapshot { _ = try? run(snapshot, askedBy: nil) }
    }

    private func makeSnapshot(_ state: State) -> Snapshot? {
        guard let blob = state.blob else { return nil }
        return Snapshot(
            blob: blob, epoch: state.epoch, offset: state.received, hasNewBytes: state.received > state.durable,
            length: state.length, digestStates: state.digests.isEmpty ? [] : state.digests.encodedStates)
    }

    /// Data first, then the row, then the number.
    private func run(_ snapshot: Snapshot, askedBy asker: Int64?) throws(StoreError) {
        if snapshot.hasNewBytes && store.writesBack {
            do throws(Errno) {
                try store.observing(.content) { () throws(Errno) in
                    try snapshot.blob.synchronize(includingName: !isTransient)
                }
            } catch {
                synchronizationFailed(askedBy: asker)
                throw .failure(error, during: "synchronize")
            }
        }
        do throws(StoreError) {
            if !isTransient {
                let advance = CatalogChange.Advance(
                    id: id, epoch: snapshot.epoch, offset: snapshot.offset, length: snapshot.length,
                    digestStates: snapshot.digestStates)
                try store.observing(.offset) { () throws(StoreError) in
                    _ = try store.catalog.commit(.advance(advance))
                }
            }
        } catch {
            // The bytes are safe, only the row may or may not know. Asking again is harmless, as its offset never
            // goes down.
            update { $0.acknowledgment = .idle }
            throw error
        }
        update { state in
            state.acknowledgment = .idle
            state.durable = max(state.durable, snapshot.offset)
            if state.length == snapshot.length { state.lengthIsRecorded = true }
            state.row?.offset = state.durable
            state.row?.length = snapshot.length
        }
    }

    /// The kernel may have dropped pages, and a second attempt would not tell. So nothing of this blob's beyond the row
    /// counts any more: the lease is void, and whoever comes next reads the row and cuts the bytes off there.
    ///
    /// A holder who asked for the acknowledgment learns it from the error, any other by the revocation.
    func synchronizationFailed(askedBy asker: Int64?) {
        let revoked = update { state -> (@Sendable () -> Void)? in
            let holderKnows = state.epoch == asker
            state.acknowledgment = .idle
            state.isStaging = false
            state.stagedDigests = nil
            state.blob = nil
            state.received = state.durable
            state.written = state.durable
            // The last bytes may have come, and their holder runs into the end of its lease before it does anything.
            if state.activity == .processing && state.unsettled == nil { state.activity = .idle }
            let revoked = state.revoke()
            return holderKnows ? nil : revoked
        }
        revoked?()
    }
}
