import SystemCalls

extension OpenUpload {
    /// The next step of ``claim(principal:until:_:)``, which runs without the lock.
    private enum ClaimStep<Value> {
        case load
        case settle
        case record(Work?)
        case stillProcessing
        case decided(Result<Value, StoreError>)
    }

    /// Waits until all earlier requests for the upload are served, loads the upload, completes an interrupted
    /// publication or processing, and then runs `decide` with the lock held. Returns nil if the target resource still
    /// processes the upload at the deadline.
    ///
    /// - Parameters:
    ///   - principal: the principal of the request; nil if the store itself calls this method. If the upload belongs to
    ///     another principal, `notFound` is thrown.
    ///   - deadline: monotonic nanoseconds.
    func claim<Result>(
        principal: String?, until deadline: Int64, _ decide: (inout State) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        let ticket = context.nextTicket()
        update { $0.machine.enqueue(ticket) }
        defer { update { $0.machine.leave(ticket) } }
        var nextWakeUp = deadline
        while true {
            let step = monitor.wait(until: nextWakeUp) { state -> ClaimStep<Result>? in
                if let principal, state.machine.isLoaded, state.principal != principal {
                    return .decided(.failure(.notFound))
                }
                // The hold may have ended without a notification, for example while the process was stopped.
                if !isHeld(state) { drop(&state) }
                switch state.machine.claim(ticket, isLate: SystemClock.monotonicNanoseconds() >= deadline) {
                case .wait: return nil
                case .load: return .load
                case .settle: return .settle
                case .record(let advance): return .record(Work(advance, state))
                case .stillProcessing: return .stillProcessing
                case .granted: break
                }
                defer { mirror(state.machine) }
                do throws(StoreError) { return .decided(.success(try decide(&state))) } catch {
                    return .decided(.failure(error))
                }
            }
            switch step {
            case .decided(let result): return try result.get()
            case .load: try load(until: principal == nil ? 0 : max(deadline, context.acquisitionDeadline))
            case .settle: try settle()
            case .record(let work): if let work { try run(work, duringCallOf: nil) }
            case .stillProcessing: return nil
            case .none:
                // Another thread loads, settles or synchronizes the upload. Check once a second whether it is ready.
                nextWakeUp = SystemClock.monotonicNanoseconds() + 1_000_000_000
            }
        }
    }

    /// Sets the state of a new upload. If the upload has a row, the row is durable.
    func begin(_ row: CatalogRow, blob: any Blob, reserved: Int64, isRecorded: Bool) -> Int64 {
        update { state in
            state.row = row
            state.blob = blob
            state.machine.begin(row, reserved: reserved, isRecorded: isRecorded, needsRow: !isTransient)
            if !row.upload.digests.isEmpty { state.digests = DigestTracker(row.upload.digests) }
            return state.machine.epoch
        }
    }

    // MARK: Loading

    /// Reads the row and opens the bytes. The caller got ``UploadMachine/Claim/load``.
    ///
    /// Bytes beyond the recorded offset were never acknowledged and are dropped. If bytes before the recorded offset
    /// are missing, the upload becomes invalid, because its offset must never decrease.
    ///
    /// - Parameter deadline: the time until which another store can release the upload, in monotonic nanoseconds.
    private func load(until deadline: Int64) throws(StoreError) {
        do throws(StoreError) {
            guard let (row, fence) = try acquire(until: deadline) else { throw .notFound }
            let blob = try openBlob(of: row, fence: fence)
            if row.isWithdrawn { context.failedPublications.insert(id) }
            let result = update { state in
                set(row, fence: fence, blob: blob, &state)
                return state.machine.load(row, hasBytes: blob != nil)
            }
            if result == .lost { try invalidateLost() }
        } catch {
            update { $0.machine.preparationFailed() }
            throw error
        }
    }

    /// Sets what the row controls, except for the machine.
    func set(_ row: CatalogRow, fence: Int64, blob: (any Blob)?, _ state: inout State) {
        // A commit that seemed to have failed may have created the row.
        context.newBlobs.remove(row.blob)
        state.row = row
        state.fence = fence
        state.blob = blob
        state.publication = row.intent.map {
            DecidedPublication(intent: $0, validated: context.configuration.validated)
        }
        state.digests = DigestTracker(row.upload.digests, states: row.digestStates, limit: row.offset)
        state.stagedDigests = nil
        state.pace = WritePace(start: row.offset)
        state.mayHaveRemovedBytes = row.offset > 0
    }

    /// Opens the bytes that a row needs. If that fails, another store can try it.
    private func openBlob(of row: CatalogRow, fence: Int64) throws(StoreError) -> (any Blob)? {
        guard row.phase == .receiving else { return nil }
        do throws(StoreError) { return try openBlob(of: row) } catch {
            context.catalog.release(id, fence: fence)
            throw error
        }
    }

    /// Opens the bytes of a row; nil if acknowledged bytes are missing. Bytes beyond the recorded offset are removed.
    private func openBlob(of row: CatalogRow) throws(StoreError) -> (any Blob)? {
        try translating("open the content file of an upload") { () throws(Errno) -> (any Blob)? in
            if row.offset == 0 {
                // Nothing was acknowledged, perhaps because bytes or name could not be made durable: both are created
                // again.
                try context.area.remove(row.blob)
                return try context.area.create(row.blob)
            }
            do throws(Errno) {
                let blob = try context.area.open(row.blob)
                let size = try blob.size()
                if size < row.offset { return nil }
                if size > row.offset { try blob.truncate(to: row.offset) }
                return blob
            } catch {
                guard error == .noSuchFile else { throw error }
                return nil
            }
        }
    }
}
