import SystemCalls

// If several stores share a catalog, one of them at a time holds an upload: see ``UploadCatalog/acquire(_:until:)``. Safety
// does not depend on these methods, because the catalog rejects changes by a store that is not the holder.
extension OpenUpload {
    /// The fence of the hold, if the state in memory depends on it; otherwise nil.
    var heldFence: Int64? {
        let machine = machine
        return dependsOnHold(machine) ? machine.fence : nil
    }

    /// Verifies in the catalog that no other store has acquired the upload since the state in memory was read. This is
    /// certain, while ``isHeld(_:)`` depends on clocks, and the clock of a shared catalog can be set.
    /// - Returns: false if another store has acquired it, or the row is gone. Then the next request reads the row again.
    func confirmHold(_ fence: Int64) throws(StoreError) -> Bool {
        if try context.catalog.isCurrent(fence, of: id) { return true }
        update { $0.machine.holdLost(fence) }
        return false
    }

    /// Called after the hold has ended without a release.
    func holdWasLost() { update { if !isHeld($0.machine) { $0.machine.drop() } } }

    /// The time in nanoseconds within which received bytes become durable before the upload is released without them. It
    /// is longer than ``StoreConfiguration/acquisitionWait``, so that the first request with which a client continues the
    /// upload at another store does not discard received bytes only because the storage is slow.
    private static let holdReleaseTime: Int64 = 5_000_000_000
    /// The time in nanoseconds for which a thread waits until the bytes are durable. After that, the release continues
    /// when the other store repeats its request.
    private static let holdReleaseWait: Int64 = 300_000_000

    /// Releases the upload because another store has requested it. Like the take-over by a request of this store, this
    /// ends the current lease, and the received bytes are made durable if that takes only some seconds. While another
    /// thread completes, removes or loads the upload, nothing changes: the other store repeats its request.
    ///
    /// Threads for this must not wait for long, because other uploads need them.
    func releaseOnRequest(_ use: UploadUse) {
        if machine.isClaimNeededForHoldRelease, (try? claim(principal: nil, until: 0) { _ in () }) == nil { return }
        let now = SystemClock.monotonicNanoseconds()
        switch update({ $0.machine.beginHoldRelease(at: now, until: now + Self.holdReleaseTime) }) {
        case .wait: break
        case .acknowledge(let holdRelease): awaitDurability(for: holdRelease, use)
        case .release(let holdRelease): release(holdRelease)
        }
    }

    private func awaitDurability(for holdRelease: UploadMachine.HoldRelease, _ use: UploadUse) {
        // If many uploads wait for a storage that stalls, a thread remains for the others.
        let canWait = context.beginHoldReleaseWait()
        defer { if canWait { context.endHoldReleaseWait() } }
        let wait = canWait ? Self.holdReleaseWait : 0
        let end = min(holdRelease.deadline, SystemClock.monotonicNanoseconds() + wait)
        var hasQueued = false
        while true {
            let step = monitor.wait(until: end) { state -> UploadMachine.HoldReleaseStep? in
                let step = state.machine.continueHoldRelease(holdRelease, hasQueued: hasQueued)
                return step == .wait ? nil : step
            }
            switch step {
            case .acknowledge:
                hasQueued = true
                enqueueAcknowledgment(use, on: context.holdReleaseAcknowledging)
            case nil where SystemClock.monotonicNanoseconds() < holdRelease.deadline:
                // Perhaps the other store does not repeat its request. Then a request of this store can take the upload
                // over.
                return update { $0.machine.allowTakeOver(of: holdRelease.epoch) }
            case .release, .wait, nil: return release(holdRelease)
            }
        }
    }

    private func release(_ holdRelease: UploadMachine.HoldRelease) {
        let fence = update { $0.machine.endHoldRelease(holdRelease) == .released ? $0.machine.fence : nil }
        // A request that has acquired the upload again meanwhile has another fence.
        if let fence { context.catalog.release(id, fence: fence) }
    }
}
