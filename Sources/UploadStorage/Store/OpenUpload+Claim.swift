import ResumableUpload
import SystemCalls

/// What the one who claims an upload does next, outside the lock.
private enum ClaimStep<Taken> {
    case load
    case settle
    /// The target resource is at work, and the deadline has passed.
    case atWork
    case taken(Taken)
    case failed(StoreError)
}

/// An upload on its way out.
private struct Removal {
    var row: CatalogueRow
    var epoch: Int64
    var reserved: Int64
    var revoked: (@Sendable () -> Void)?
}

extension OpenUpload {
    /// Waits until nobody else decides about the upload, loads what is needed, brings to its end what was begun, and then runs
    /// `take` with the lock held. Nil if the target resource is at work when the deadline passes.
    ///
    /// - Parameters:
    ///   - principal: whoever asks; another one's upload does not exist for it. Nil for the store itself.
    ///   - deadline: monotonic nanoseconds.
    func claim<Result>(
        principal: String?, until deadline: Int64, _ take: (inout State) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        var nextLook = deadline
        while true {
            let step = monitor.wait(until: nextLook) { state -> ClaimStep<Result>? in
                if let row = state.row, let principal, row.upload.principal != principal { return .failed(.notFound) }
                // What is told of it then has to be all of it: the last bytes may still be on their way to the disk.
                if state.activity == .processing, state.durable >= state.received,
                    SystemClock.monotonicNanoseconds() >= deadline
                {
                    return .atWork
                }
                guard state.activity == .idle, state.acknowledgement != .running || !state.needsSettling else {
                    return nil
                }
                if state.needsLoading {
                    // An acknowledgement of the bytes that were given up must not end in the middle of the new ones.
                    if state.acknowledgement == .running { return nil }
                    state.acknowledgement = .idle
                    state.activity = .loading
                    return .load
                }
                if state.needsSettling {
                    state.acknowledgement = .idle
                    state.activity = .settling
                    return .settle
                }
                defer { mirror(state) }
                do throws(StoreError) { return .taken(try take(&state)) } catch { return .failed(error) }
            }
            monitor.notifyAll()
            switch step {
            case .taken(let result): return result
            case .failed(let error): throw error
            case .load: try load()
            case .settle: try settle()
            case .atWork: return nil
            case .none:
                // Somebody loads, settles or synchronises, which takes as long as the disk takes.
                nextLook = SystemClock.monotonicNanoseconds() + 1_000_000_000
            }
        }
    }

    /// Takes the upload away from everybody, makes `change` durable and forgets row and bytes. Nil if the target resource is at
    /// work beyond the deadline, or `isWanted` says no.
    func remove(
        principal: String?, until deadline: Int64, if isWanted: (UploadRecord) -> Bool = { _ in true }
    ) throws(StoreError) -> Bool? {
        let taken: Removal?? = try claim(principal: principal, until: deadline) {
            (state) throws(StoreError) -> Removal? in
            guard let row = state.row, let record = record(state), isWanted(record) else { return nil }
            state.activity = .settling
            state.dropStaged()
            let revoked = state.revoke()
            return Removal(row: row, epoch: state.epoch, reserved: state.reserved, revoked: revoked)
        }
        guard let taken else { return nil }
        guard let taken else { return false }
        taken.revoked?()
        monitor.waitForever { state -> Void? in
            if state.acknowledgement == .running { return nil }
            state.acknowledgement = .idle
            return ()
        }
        do throws(StoreError) {
            try store.catalogue.commit(.delete(id, epoch: taken.epoch), of: id) { $0 == nil }
        } catch {
            update { $0.activity = .idle }
            throw error
        }
        update { state in
            state.row = nil
            state.blob = nil
            state.received = 0
            state.written = 0
            state.durable = 0
            state.reserved = 0
            state.activity = .idle
        }
        if taken.row.isUnfinished {
            store.ledger.end(taken.row.upload.principal, releasing: taken.reserved, counts: true)
            store.discard(taken.row.blob)
        } else {
            store.finished.remove(taken.row.phase)
        }
        return true
    }
}
