import HTTPSemantics
import ResumableUpload
import SystemCalls

/// One upload in use: its ``UploadMachine``, protected by a lock, and the row, bytes and digests that the machine
/// controls.
///
/// While the lock is held, a thread waits only for writes and truncations of local files, and for the number of their
/// free bytes. It waits for memory, and synchronizes, changes the catalog and calls revocations, without the lock. The
/// ledger and the trackers have inner locks.
final class OpenUpload: Sendable {
    let id: UploadID
    /// Whether it is a plain upload: bytes that have a row only while they replace a file.
    let isTransient: Bool
    let context: StoreContext
    let monitor: Monitor<State>

    typealias Revocation = @Sendable () -> Void
    typealias Validation = @Sendable (Response, PublishedFile.Attributes) -> Response

    struct State: Sendable {
        var machine = UploadMachine()
        /// The row as it was read, with the last publication that was decided. Other later changes are in `machine`.
        var row: CatalogRow?
        var blob: (any Blob)?
        /// The ``Publication/validated`` of the publication that was decided; nil if recovery completes it.
        var validated: Validation?
        /// The closure to call if the machine requires a ``UploadMachine/Notification``.
        var revocation: Revocation?
        var digests = DigestTracker.none
        var stagedDigests: DigestTracker?
        var pace = WritePace()

        var principal: String { row?.upload.principal ?? "" }

        /// The publication that was decided and is not complete.
        var intent: PublicationIntent? { machine.isDecided ? row?.intent : nil }
    }

    /// An upload whose row has not been read.
    init(_ id: UploadID, _ context: StoreContext) {
        self.id = id
        self.context = context
        isTransient = false
        monitor = Monitor(State())
    }

    /// A new upload. Its first lease has the epoch of the row.
    /// - Parameters:
    ///   - isRecorded: whether the row is durable. Otherwise there is no row yet.
    ///   - spare: the free bytes in addition to those that must stay free.
    init(
        new row: CatalogRow, blob: any Blob, _ context: StoreContext, isTransient: Bool, isRecorded: Bool,
        reserved: Int64, spare: Int64
    ) {
        id = row.id
        self.context = context
        self.isTransient = isTransient
        var state = State(row: row, blob: blob)
        state.machine.begin(row, reserved: reserved, isRecorded: isRecorded, isRowNeeded: !isTransient)
        if !row.upload.digests.isEmpty { state.digests = DigestTracker(row.upload.digests) }
        state.pace.spaceChecked(upTo: 0, spare: spare)
        monitor = Monitor(state)
    }

    /// A copy of the state. Another thread may change the state at any time, except for what the activity of the machine
    /// reserves for this thread.
    var snapshot: State { monitor.withLock { $0 } }

    /// A copy of the machine, as in ``snapshot``.
    var machine: UploadMachine { monitor.withLock { $0.machine } }

    /// Changes the state, wakes the waiting threads, and notifies the holder of a lease that has ended.
    func update<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var revocation: Revocation?
        defer {
            monitor.notifyAll()
            revocation?()
        }
        return try monitor.withLock { (state) throws(Failure) in
            defer { revocation = applyEvent(&state) }
            return try body(&state)
        }
    }

    /// Does what the last event of the machine requires.
    /// - Returns: the closure to call without the lock.
    private func applyEvent(_ state: inout State) -> Revocation? {
        if !state.machine.hasBytes { state.blob = nil }
        if !state.machine.isStaging, state.stagedDigests != nil {
            // Staged bytes were dropped. If the truncation fails, these bytes are overwritten later, or removed before
            // the publication.
            state.stagedDigests = nil
            state.pace.limit(to: state.machine.written)
            _ = try? state.blob?.truncate(to: state.machine.received)
        }
        switch state.machine.beginNotification() {
        case .atEnd: return nil
        case .due: return state.revocation.take()
        case .none:
            state.revocation = nil
            return nil
        }
    }

    /// The open bytes of an upload.
    struct Content {
        let blob: any Blob
        let row: CatalogRow
        let machine: UploadMachine
    }

    /// - Throws: `superseded` if the bytes are not open.
    func content() throws(StoreError) -> Content {
        let state = snapshot
        guard let blob = state.blob, let row = state.row else { throw .superseded }
        return Content(blob: blob, row: row, machine: state.machine)
    }

    /// The upload as clients see it; nil before it was loaded or after it was removed.
    func record(_ state: State) -> UploadRecord? {
        guard state.machine.isLoaded, var record = state.row?.record else { return nil }
        record.offset = state.machine.durable
        record.length = state.machine.length
        record.phase = state.machine.visiblePhase
        return record
    }

    /// Whether the upload has a row and is known to clients.
    var hasDurableRow: Bool { !isTransient && machine.isRecorded }

    /// Whether this store is certainly the holder, so that the state in memory is current. True if there is no row that
    /// another store could know.
    func isHeld(_ machine: UploadMachine) -> Bool {
        !dependsOnHold(machine) || context.catalog.holds(id, fence: machine.fence)
    }

    func dependsOnHold(_ machine: UploadMachine) -> Bool {
        context.catalog.isShared && !isTransient && machine.isLoaded && machine.isRecorded && machine.isUnfinished
    }
}

// Requests claim the upload in the order in which they came, and the first one loads it.
extension OpenUpload {
    /// The time in nanoseconds between two checks whether this store is still the holder.
    private static var holdCheckInterval: Int64 { 1_000_000_000 }

    /// Waits until all earlier requests for the upload are served, loads the upload, completes an interrupted
    /// publication or processing, and then runs `decide` with the lock held. Returns nil if the target resource still
    /// processes the upload at the deadline.
    ///
    /// - Parameters:
    ///   - principal: the principal of the request; nil if the store itself calls this method. If the upload belongs to
    ///     another principal, `notFound` is thrown.
    ///   - deadline: monotonic nanoseconds.
    func claim<Value>(
        principal: String?, until deadline: Int64, _ decide: (inout State) throws(StoreError) -> Value
    ) throws(StoreError) -> Value? {
        let ticket = context.nextTicket()
        var isQueued = false
        defer { update { $0.machine.leave(ticket) } }
        var wakeUp: Int64? = deadline
        while true {
            var value: Value?
            var (recording, revocation): (Recording?, Revocation?) = (nil, nil)
            let step = try monitor.wait(until: wakeUp) { (state) throws(StoreError) -> UploadMachine.Claim? in
                if !isQueued { state.machine.enqueue(ticket) }
                isQueued = true
                if let principal, state.machine.isLoaded, state.principal != principal { throw .notFound }
                // The hold may have ended without a notification, for example while the process was stopped.
                if !isHeld(state.machine) { state.machine.drop() }
                let step = state.machine.claim(ticket, isLate: SystemClock.monotonicNanoseconds() >= deadline)
                if case .record(let advance) = step { recording = Recording(self, advance, state) }
                if step == .granted { value = try decide(&state) }
                revocation = applyEvent(&state)
                return step == .wait && revocation == nil ? nil : step
            }
            revocation?()
            switch step {
            case .granted: return value
            case .load:
                try prepare { () throws(StoreError) in
                    try load(until: principal == nil ? 0 : max(deadline, context.acquisitionDeadline))
                }
            case .settle: try prepare { () throws(StoreError) in try settle() }
            case .record: if let recording { try run(recording, duringCallOf: nil) }
            case .stillProcessing: return nil
            case .wait, nil:
                let now = SystemClock.monotonicNanoseconds()
                // The thread that this request waits for notifies it. Only a hold can end without a notification.
                if now >= deadline { wakeUp = context.catalog.isShared ? now + Self.holdCheckInterval : nil }
            }
        }
    }

    // MARK: Loading

    /// Loads, settles or removes the upload. If that fails, the next request tries it again.
    func prepare<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        do throws(StoreError) { return try body() } catch {
            preparationFailed()
            throw error
        }
    }

    func preparationFailed() { update { $0.machine.preparationFailed() } }

    /// Reads the row and opens the bytes. The caller got ``UploadMachine/Claim/load``.
    ///
    /// Bytes beyond the recorded offset were never acknowledged and are dropped. If bytes before the recorded offset
    /// are missing, the upload becomes invalid, because its offset must never decrease.
    ///
    /// - Parameter deadline: the time until which another store can release the upload, in monotonic nanoseconds.
    private func load(until deadline: Int64) throws(StoreError) {
        guard let held = try context.catalog.acquire(id, until: deadline) else { throw .notFound }
        let row = held.row
        let blob: (any Blob)?
        do throws(StoreError) { blob = try row.phase == .receiving ? openBlob(of: row) : nil } catch {
            // Another store can try it.
            context.catalog.release(id, fence: held.fence)
            throw error
        }
        if row.isWithdrawn { context.failedPublications.insert(id) }
        let result = update { state in
            set(row, blob, &state)
            return state.machine.load(row, fence: held.fence, hasBytes: blob != nil)
        }
        if result == .lost { try invalidateLost() }
    }

    /// Sets the state that follows from the row, except for the machine.
    func set(_ row: CatalogRow, _ blob: (any Blob)?, _ state: inout State) {
        // A commit that seemed to have failed may have created the row.
        context.newBlobs.remove(row.blob)
        state.row = row
        state.blob = blob
        state.validated = nil
        state.digests =
            row.upload.digests.isEmpty
            ? .none : DigestTracker(row.upload.digests, states: row.digestStates, limit: row.offset)
        state.stagedDigests = nil
        state.pace = WritePace(start: row.offset)
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

    // MARK: End of the use

    /// Called when the upload is no longer in use.
    func endUse() {
        guard hasDurableRow else { return forget() }
        if let fence = releaseSurplus() { context.catalog.release(id, fence: fence) }
    }

    /// Releases the bytes that were reserved in advance.
    /// - Returns: the fence of the hold; nil if the upload is not loaded or has ended.
    @discardableResult
    func releaseSurplus() -> Int64? {
        if isTransient { return nil }
        let (principal, surplus, fence) = update { ($0.principal, $0.machine.removeSurplus(), $0.machine.fence) }
        guard let surplus else { return nil }
        if surplus != 0 { context.ledger.end(principal, releasing: surplus, counts: false) }
        return fence
    }

    /// Waits for the end of the processing, at most until `deadline`, and then ends every lease. An upload that has no
    /// row gets one, because its client may know its URL.
    func supersede(until deadline: Int64) {
        _ = monitor.wait(until: deadline) { state -> Void? in
            state.machine.isProcessing || state.machine.isSettling ? nil : ()
        }
        update { $0.machine.revoke() }
        // If this fails, the upload ends without a row, as after a crash.
        _ = try? recordNow()
    }
}
