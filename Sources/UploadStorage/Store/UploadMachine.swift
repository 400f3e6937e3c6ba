/// The state machine of one upload in use, as a value: which lease may write, which bytes count, and which thread may
/// complete or remove the upload (draft sections 4.3 to 4.6).
///
/// It does no I/O and reads no clock. The caller reports each event with a method call. The result of the call is the
/// next action. The caller reports the outcome of that action with a later call. The rules:
///
/// - `epoch` is a fencing token. A lease may write only while its epoch is the current epoch. A take-over raises the
///   current epoch.
/// - `durable` ≤ `received` ≤ `written`. `durable` is the offset that clients see: it never decreases.
/// - One acknowledgment runs at a time. It belongs to the upload: bytes that it makes durable are durable for the next
///   lease, too.
/// - While `activity` is not idle, one thread alone may complete or remove the upload. Requests wait for it, and are
///   served in the order in which they came.
///
/// Only the events of this type, which are in `UploadMachine*.swift`, change its properties. `make lint` verifies this.
struct UploadMachine: Hashable, Sendable {
    enum Activity: Hashable {
        case idle
        /// The row is read and the bytes are opened.
        case loading
        /// All content is received, and the target resource processes it. The upload cannot be taken over.
        case processing
        /// All content is received, and a publication is in progress. Only the publication changes the row.
        case publishing
        /// The upload is completed, invalidated or removed, or staged content is verified.
        case settling
        /// The upload is completed or invalidated after the target resource has processed it.
        case ending
    }

    enum Acknowledgment: Hashable {
        case idle
        /// The acknowledgment waits for a thread. A caller that needs it immediately runs it instead.
        case queued
        case running
    }

    enum Existence: Hashable {
        case no
        /// A commit that failed may have created it.
        case unknown
        case yes
    }

    enum Notification: Hashable {
        /// The next call of the holder reports that the lease has ended.
        case none
        /// The holder has to be notified if others end the lease.
        case atEnd
        /// The lease has ended: notify its holder.
        case due
    }

    struct Failure: Hashable {
        var lease: Int64
        var error: StoreError
    }

    var activity = Activity.idle
    /// The lease that has begun the processing or the end of the upload; nil if no lease has begun the activity.
    var processor: Int64?
    var acknowledgment = Acknowledgment.idle
    var epoch: Int64 = 0
    /// Whether others wait for the end of the current lease instead of taking the upload over.
    var isExclusive = false
    /// Whether the holder of the current lease waits in a call, or has got an error from one. If its bytes cannot be
    /// synchronized, it gets the error from a call, and needs no other notification.
    var isHolderWaiting = false
    var notification = Notification.none
    /// The lease that a failed synchronization has ended on another thread.
    var failure: Failure?
    /// The release for another store that is in progress; nil if there is none. It waits for the current lease, or has
    /// ended that lease.
    var holdRelease: HoldRelease?
    /// Tickets of the waiting requests, in the order in which they came.
    var waiting: [Int] = []

    /// Whether the row has been read.
    var isLoaded = false
    /// The fence of the hold with which the row was read or created.
    var fence: Int64 = 1
    /// Whether the upload has a row at all. A plain upload has a row only while it replaces a file; an upload
    /// that is recorded late has none until its offset, its final response or the start of its processing has to be
    /// durable.
    var rowExists = Existence.yes
    var phase = UploadRecord.Phase.receiving
    /// Whether the row records that the target resource processes the upload.
    var isProcessingRecorded = false
    /// Whether the intent of a publication is durable, but its final response is not.
    var isDecided = false
    /// Whether the row needs no change, except for the offset. True for a plain upload, which needs no row.
    var isRowCurrent = true
    /// The length in the row.
    var recordedLength: Int64?

    /// Whether the bytes are open.
    var hasBytes = false
    /// The end of the written bytes, staged bytes included.
    var written: Int64 = 0
    /// The end of the received bytes: written, contiguous from 0, and not staged.
    var received: Int64 = 0
    /// The end of the durable bytes, which the row records durably: the offset that is reported to clients.
    var durable: Int64 = 0
    var isStaging = false
    /// Whether bytes may have been removed from the end of the file since its last synchronization, so that they may
    /// still be on the disk. For a file that was opened again this is unknown.
    var canHaveRemovedBytes = false
    var length: Int64?
    /// The number of bytes that the usage ledger counts for this upload.
    var reserved: Int64 = 0

    // MARK: Queries

    /// The reason why the lease of this epoch may no longer write; nil if it may.
    func refusal(of lease: Int64) -> StoreError? {
        guard lease == epoch else { return failure(of: lease) ?? .superseded }
        return switch phase {
        case .complete: .completed
        case .invalid(let reason): .gone(reason: reason)
        case .receiving, .processing: isDecided ? .superseded : nil
        }
    }

    /// The error with which a synchronization on another thread has ended this lease; nil if none has.
    func failure(of lease: Int64) -> StoreError? { failure?.lease == lease ? failure?.error : nil }

    func isCurrent(_ lease: Int64) -> Bool { lease == epoch }

    func require(_ lease: Int64) throws(StoreError) {
        if let refusal = refusal(of: lease) { throw refusal }
    }

    /// Does the same as ``require(_:)``, and also throws if the bytes are not open.
    func requireBytes(_ lease: Int64) throws(StoreError) {
        try require(lease)
        if !hasBytes { throw .invalidState("the bytes are not available any more") }
    }

    /// Whether the upload certainly has a row.
    var isRecorded: Bool { rowExists == .yes }

    var isUnfinished: Bool {
        switch phase {
        case .receiving, .processing: true
        case .complete, .invalid: false
        }
    }

    /// Whether nothing is in progress that changes the row.
    var isIdle: Bool { activity == .idle && acknowledgment != .running }

    var isProcessing: Bool { activity == .processing || activity == .publishing }

    /// Whether a thread completes or removes the upload, or verifies staged content.
    var isSettling: Bool { activity == .settling || activity == .ending }

    func isProcessing(as lease: Int64) -> Bool { lease == epoch && isProcessing }

    /// Whether a publication was decided, or the processing is recorded, and the upload has not ended. If no thread
    /// does so at the moment, the next request has to finish it.
    var isSettlingNeeded: Bool { isDecided || isProcessingRecorded || phase == .processing }

    var isLoadingNeeded: Bool { !isLoaded || isUnfinished && !hasBytes && !isSettlingNeeded }

    /// The phase as clients see it.
    var visiblePhase: UploadRecord.Phase {
        phase == .receiving && (isProcessing || isSettlingNeeded) ? .processing : phase
    }

    // MARK: Creation and loading

    /// A new upload.
    /// - Parameters:
    ///   - isRecorded: whether it has a row, which is durable.
    ///   - isRowNeeded: whether its first acknowledgment or its end creates a missing row; false for a plain upload.
    mutating func begin(_ row: CatalogRow, reserved: Int64, isRecorded: Bool, isRowNeeded: Bool = true) {
        (isLoaded, hasBytes, rowExists) = (true, true, isRecorded ? .yes : .no)
        isRowCurrent = isRecorded || !isRowNeeded
        (epoch, length, recordedLength, self.reserved) = (row.epoch, row.length, row.length, reserved)
    }

    enum Loading: Hashable {
        case loaded
        /// Acknowledged bytes are missing. Make the upload invalid: other requests wait until that is durable.
        case lost
    }

    /// The row was read.
    /// - Parameters:
    ///   - fence: the fence of the hold with which it was read.
    ///   - hasBytes: false if the row needs no bytes, or if acknowledged bytes are missing.
    mutating func load(_ row: CatalogRow, fence: Int64, hasBytes: Bool) -> Loading {
        read(row, fence: fence, hasBytes: hasBytes)
        guard row.phase == .receiving, !hasBytes else { return .loaded }
        (activity, processor) = (.settling, nil)
        return .lost
    }

    /// The row was read after ``beginExpiry(of:at:)``. The bytes need not be opened for the removal.
    /// - Returns: `busy` if the upload has not expired, or an interrupted publication or processing has to be finished
    ///   first; otherwise `removable`.
    mutating func loadExpired(_ row: CatalogRow, fence: Int64, at now: Int64) -> Expiry {
        guard row.phase == .receiving, row.intent == nil, row.expiresAt.map({ $0 <= now }) ?? false else {
            preparationFailed()
            return .busy
        }
        read(row, fence: fence, hasBytes: false)
        return .removable
    }

    private mutating func read(_ row: CatalogRow, fence: Int64, hasBytes: Bool) {
        (isLoaded, rowExists, self.fence, self.hasBytes) = (true, .yes, fence, hasBytes)
        canHaveRemovedBytes = row.offset > 0
        (phase, isDecided, isRowCurrent) = (row.phase, row.intent != nil, true)
        (written, received, durable, isStaging) = (row.offset, row.offset, row.offset, false)
        (length, recordedLength) = (row.length, row.length)
        reserved = row.isUnfinished ? max(reserved, row.reservedBytes) : 0
        epoch = max(epoch, row.epoch)
        revoke()
        activity = .idle
    }

    /// The upload could not be loaded, settled or removed. The next request tries it again.
    mutating func preparationFailed() { if activity == .loading || activity == .settling { activity = .idle } }
}

// Requests that wait for the upload, and its leases.
extension UploadMachine {
    enum Claim: Hashable {
        case wait
        /// The target resource still processes the upload, and the time limit has passed.
        case stillProcessing
        /// Read the row and open the bytes, then claim again.
        case load
        /// Finish the publication or the processing that was interrupted, then claim again.
        case settle
        /// Make this advance durable, then claim again: the upload is being processed, and its offset can be reported
        /// only after it has a row.
        case record(Advance)
        /// The caller is next, and acts before it releases the lock.
        case granted
    }

    mutating func enqueue(_ ticket: Int) { waiting.append(ticket) }

    mutating func leave(_ ticket: Int) { waiting.removeAll { $0 == ticket } }

    /// - Parameter isLate: whether the time to wait for a target resource has passed.
    mutating func claim(_ ticket: Int, isLate: Bool) -> Claim {
        if isProcessing, isLate {
            // Returned only after all received bytes are durable, because the caller reports `durable` as the offset.
            if isRecorded, durable >= received {
                leave(ticket)
                return .stillProcessing
            }
            if let advance = beginRecording() { return .record(advance) }
        }
        guard waiting.first == ticket, activity == .idle, !isExclusive else { return .wait }
        if isLoadingNeeded || isSettlingNeeded {
            // Loading drops bytes that are not acknowledged. If a running acknowledgment of these bytes ended later, it
            // would raise `durable` after new bytes have replaced them.
            if acknowledgment == .running { return .wait }
            acknowledgment = .idle
            (activity, processor) = (isLoadingNeeded ? .loading : .settling, nil)
            return activity == .loading ? .load : .settle
        }
        leave(ticket)
        return .granted
    }

    /// Ends the current lease and raises `epoch`, whose new value belongs to the new lease.
    ///
    /// - Parameter isExclusive: whether other requests wait for the end of the new lease.
    mutating func takeOver(exclusive isExclusive: Bool) {
        dropStaged()
        revoke()
        self.isExclusive = isExclusive
    }

    /// The holder of the lease is to be notified if others end the lease, and allows other requests to take the
    /// lease over.
    mutating func observe(_ lease: Int64) {
        allowTakeOver(of: lease)
        if lease == epoch { notification = .atEnd }
    }

    /// - Returns: `due` if the holder of a lease has to be notified now; it is returned once.
    mutating func beginNotification() -> Notification {
        defer { if notification == .due { notification = .none } }
        return notification
    }

    /// Allows other requests to take the lease over.
    mutating func allowTakeOver(of lease: Int64) { if lease == epoch { isExclusive = false } }

    /// Ends the current lease.
    mutating func revoke() {
        epoch += 1
        if notification == .atEnd { notification = .due }
        (isExclusive, isHolderWaiting, holdRelease) = (false, false, nil)
    }

    enum Release: Hashable {
        /// The lease or the upload has ended: nothing remains to be done.
        case done
        /// Store the response for an interrupted processing, acknowledge the received bytes, then end the release.
        case completeAsInterrupted
        /// Acknowledge the received bytes, then end the release.
        case acknowledge
    }

    /// The holder of the lease does not use it any more. Staged bytes are discarded.
    mutating func beginRelease(of lease: Int64) -> Release {
        guard lease == epoch else { return .done }
        discardStaged(as: lease)
        notification = .none
        guard isUnfinished else {
            revoke()
            return .done
        }
        if isProcessing {
            if isProcessingRecorded { return .completeAsInterrupted }
            activity = .idle
        }
        return .acknowledge
    }

    /// Ends the lease. If the interruption of the processing could not be recorded, the next request records it.
    mutating func endRelease(of lease: Int64) {
        if isProcessing, processor == lease { activity = .idle }
        if lease == epoch { revoke() }
    }
}
