import SystemCalls

// If several stores share a catalog, one of them at a time holds an upload: see ``UploadCatalog/acquire(_:until:)``. Safety
// does not depend on these methods, because the catalog rejects changes by a store that is not the holder.
extension OpenUpload {
    /// The fence of the hold, if the state in memory depends on it; otherwise nil.
    var heldFence: Int64? { monitor.withLock { dependsOnHold($0.machine) ? $0.fence : nil } }

    /// Verifies in the catalog that no other store has acquired the upload since the state in memory was read. Whether this
    /// store is the holder according to ``isHeld(_:)`` depends on clocks, and that of a shared catalog can be set.
    /// - Returns: false if another store has; then the next request reads the row again.
    func confirmHold(_ fence: Int64) throws(StoreError) -> Bool {
        if try context.catalog.isCurrent(fence, of: id) { return true }
        update { state in if state.machine.isLoaded, state.fence == fence { state.machine.drop() } }
        return false
    }

    /// Called after the hold has ended without a release.
    func holdWasLost() { update { state in if !isHeld(state) { state.machine.drop() } } }

    /// Ends the hold at the end of the use.
    func releaseHold() {
        let fence = monitor.withLock { state in
            state.machine.isLoaded && state.machine.isUnfinished ? state.fence : nil
        }
        if let fence { context.catalog.release(id, fence: fence) }
    }

    /// The time within which received bytes become durable before the upload is released, in nanoseconds. It is longer
    /// than the time for which one request of another store waits: the client gets no error if the storage is only slow.
    private static let handOverTime: Int64 = 5_000_000_000
    /// The time for which a thread waits for this. Then the other store asks again.
    private static let handOverWait: Int64 = 300_000_000

    /// Releases the upload because another store wants to hold it. Like the take-over by a request of this store, this
    /// ends the current lease, and the received bytes are made durable if that takes only some seconds. While another
    /// thread completes, removes or loads the upload, nothing changes: the other store asks again.
    ///
    /// Threads for this must not wait for long, because other uploads need them.
    func handOver(_ use: UploadUse) {
        let mustClaim = monitor.withLock { $0.machine.needsClaimForHandOver }
        if mustClaim, (try? claim(principal: nil, until: 0) { _ in () }) == nil { return }
        let now = SystemClock.monotonicNanoseconds()
        switch update({ $0.machine.beginHandOver(at: now, until: now + Self.handOverTime) }) {
        case .wait: break
        case .acknowledge(let handOver): complete(handOver, use)
        case .release(let handOver): release(handOver)
        }
    }

    private func complete(_ handOver: UploadMachine.HandOver, _ use: UploadUse) {
        // If many uploads wait for a storage that stalls, a thread remains for the others.
        let waits = context.beginHandOverWait()
        defer { if waits { context.endHandOverWait() } }
        let wait = waits ? Self.handOverWait : 0
        let end = min(handOver.deadline, SystemClock.monotonicNanoseconds() + wait)
        var hasQueued = false
        while true {
            let step = monitor.wait(until: end) { state -> UploadMachine.HandOverStep? in
                let step = state.machine.continueHandOver(handOver, hasQueued: hasQueued)
                return step == .wait ? nil : step
            }
            if case .acknowledge? = step {
                hasQueued = true
                enqueueAcknowledgment(use, on: context.handOverAcknowledging)
                continue
            }
            if step == nil, SystemClock.monotonicNanoseconds() < handOver.deadline {
                // The other store may not ask again.
                update { _ = $0.machine.allowTakeOver(of: handOver.epoch) }
                return
            }
            break
        }
        release(handOver)
    }

    private func release(_ handOver: UploadMachine.HandOver) {
        let fence = update { $0.machine.endHandOver(handOver) ? $0.fence : nil }
        // A request that has acquired the upload again meanwhile has another fence.
        if let fence { context.catalog.release(id, fence: fence) }
    }
}
