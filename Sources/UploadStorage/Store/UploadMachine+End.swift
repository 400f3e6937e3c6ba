// The upload is processed by its target resource or published, and ends, or is released for another store.
extension UploadMachine {
    /// The result of an event that reserves the end of the upload for the holder of a lease.
    enum Reservation: Hashable {
        /// Another thread completes or removes the upload, or an acknowledgment is running.
        case wait
        /// - Parameter shouldAcknowledge: whether all received bytes have to become durable first.
        case granted(shouldAcknowledge: Bool)
    }

    /// All content is received. The caller acknowledges it if that is necessary, and then calls the target resource.
    mutating func beginProcessing(as lease: Int64, shouldMarkDurably: Bool) throws(StoreError) -> Reservation {
        try require(lease)
        if isStaging { throw .invalidState("staged bytes are neither committed nor discarded") }
        // A target that can run again needs no row: after a crash, the client uploads the short content again.
        return try reserve(.processing, as: lease, shouldAcknowledge: shouldMarkDurably || isRecorded)
    }

    /// The row now records that the target resource processes the upload.
    mutating func mark() { isProcessingRecorded = true }

    /// Records that the row may be marked as processing, although the target resource was not called. The next
    /// acknowledgment resets it.
    mutating func markFailed() { if isRecorded && isUnfinished { isRowCurrent = false } }

    /// The next action after an event that ends or revokes a processing.
    enum ProcessingEnd: Hashable {
        case done
        /// Acknowledge the upload: that resets the row, which records the processing.
        case acknowledge
    }

    /// The target resource has not processed the upload. A later request can call it.
    mutating func unmark(as lease: Int64) -> ProcessingEnd { isProcessing(as: lease) ? clearMark() : .done }

    private mutating func clearMark() -> ProcessingEnd {
        guard isProcessingRecorded else { return .done }
        (isProcessingRecorded, isRowCurrent) = (false, false)
        return .acknowledge
    }

    /// Ends the processing that could not begin: the target resource was not called. The row may be marked as
    /// processing; the next acknowledgment resets it.
    mutating func processingFailed(as lease: Int64) {
        // After a failed synchronization the lease has ended, and a later lease may be processing. Closing the store
        // also ends the lease, but the activity still belongs to that lease.
        guard activity == .processing, processor == lease else { return }
        activity = .idle
        if isRecorded { isRowCurrent = false }
    }

    /// Ends the processing without having called the target resource. The holder responds next, so it is not notified
    /// any more if the lease ends.
    mutating func endProcessing(as lease: Int64) -> ProcessingEnd {
        guard lease == epoch else { return .done }
        notification = .none
        guard activity == .processing else { return .done }
        activity = .idle
        return clearMark()
    }

    /// Reserves the row for a publication: from now on only the publication changes it.
    mutating func beginPublishing(as lease: Int64) throws(StoreError) -> Reservation {
        try reserve(.publishing, as: lease, shouldAcknowledge: isRecorded)
    }

    /// Ends a publication that has failed. If it was decided, the lease ends, and the next request completes the
    /// publication: the holder gets the error, and needs no other notification.
    mutating func publishingFailed(as lease: Int64) {
        // The upload may have been dropped meanwhile, and loaded for another lease.
        guard activity == .publishing, processor == lease else { return }
        guard isDecided else {
            activity = isLoaded ? .processing : .idle
            return
        }
        (activity, notification) = (.idle, .none)
        revoke()
    }

    /// Records that a publication is durably decided: it will be made or refused, also after a crash. It replaces the
    /// one that was decided before.
    mutating func decide() { isDecided = true }

    /// Records that the upload has a row, which contains this offset durably.
    mutating func record(offset: Int64) {
        rowExists = .yes
        durable = max(durable, offset)
    }

    /// The commit that creates the row failed, but may have been made.
    mutating func recordingFailed() { if rowExists == .no { rowExists = .unknown } }

    /// Records that the row of the upload was removed.
    mutating func clearRecord() { (rowExists, isDecided) = (.no, false) }

    private mutating func reserve(
        _ activity: Activity, as lease: Int64, shouldAcknowledge: Bool
    ) throws(StoreError) -> Reservation {
        try require(lease)
        let isFree = self.activity == .idle || isProcessing
        isHolderWaiting = !isFree || acknowledgment == .running
        if isHolderWaiting { return .wait }
        acknowledgment = .idle
        self.activity = activity
        processor = lease
        return .granted(shouldAcknowledge: shouldAcknowledge)
    }

    // MARK: End

    /// Reserves the upload for its end: its final response, or the reason for which it is invalid, becomes durable.
    mutating func beginEnding(as lease: Int64) throws(StoreError) -> Reservation {
        try reserve(isProcessing ? .ending : .settling, as: lease, shouldAcknowledge: false)
    }

    /// The end of the upload could not be made durable. If the target resource has run, the holder of the lease can try
    /// again to store its response. After the end of the lease nothing else would end the processing.
    mutating func endingFailed(as lease: Int64) {
        guard isSettling, processor == lease else { return }
        activity = activity == .ending && lease == epoch ? .processing : .idle
    }

    /// The upload has ended, durably. Operations of its lease then throw `completed` or `gone`.
    /// - Returns: the number of bytes that were reserved.
    mutating func finish(as phase: UploadRecord.Phase) -> Int64 {
        self.phase = phase
        dropStaged()
        if case .complete = phase { durable = received }
        (hasBytes, isDecided, isProcessingRecorded, isRowCurrent) = (false, false, false, true)
        // The final response is known, and nothing can be written any more, so no lease has to be stopped.
        notification = .none
        activity = .idle
        return removeReserved()
    }

    // MARK: Removal

    /// Ends every lease, before the upload is removed.
    mutating func beginRemoval() {
        (activity, processor) = (.settling, nil)
        dropStaged()
        revoke()
    }

    enum Expiry: Hashable {
        /// The upload has not expired, or is in use, so that the removal would have to wait.
        case busy
        /// Read the row, then remove the upload.
        case load
        case removable
    }

    /// Begins to remove an upload if it has expired, without waiting.
    /// - Parameter expiresAt: the time in the row, if the row has been read.
    mutating func beginExpiry(of expiresAt: Int64?, at now: Int64) -> Expiry {
        if isLoaded, expiresAt.map({ $0 > now }) ?? true { return .busy }
        guard isIdle, !isExclusive, waiting.isEmpty else { return .busy }
        if !isLoaded {
            activity = .loading
            return .load
        }
        return isSettlingNeeded || !isUnfinished ? .busy : .removable
    }

    enum RemovalStep: Hashable {
        /// An acknowledgment is running.
        case wait
        case removeRow
    }

    /// Drops a queued acknowledgment before the row is removed.
    mutating func continueRemoval() -> RemovalStep {
        if acknowledgment == .running { return .wait }
        acknowledgment = .idle
        return .removeRow
    }

    /// The row and the bytes were removed, or belong to another object from now on.
    /// - Returns: the number of bytes that were reserved.
    @discardableResult
    mutating func forget() -> Int64 {
        (isLoaded, hasBytes, isDecided, isStaging) = (false, false, false, false)
        (received, written, durable) = (0, 0, 0)
        activity = .idle
        return removeReserved()
    }

    /// `reserved` is the number of bytes that were reserved.
    enum EndWithoutRow: Hashable {
        /// The upload has a row, or has ended already.
        case refused
        /// There is certainly no row.
        case ended(reserved: Int64)
        /// There may be a row: remove it with this epoch.
        case removeRow(reserved: Int64, epoch: Int64)
    }

    /// Ends an upload that has no row, or a plain upload, whose row ends with its lease.
    mutating func endWithoutRow(isTransient: Bool) -> EndWithoutRow {
        guard isLoaded, isUnfinished, isTransient || !isRecorded else { return .refused }
        notification = .none
        defer { revoke() }
        let reserved = forget()
        return rowExists == .no ? .ended(reserved: reserved) : .removeRow(reserved: reserved, epoch: epoch)
    }

    /// The row of a decided publication remains for the sweep, and protects the bytes.
    /// - Returns: the number of bytes that were reserved beyond the received bytes; nil if nothing was decided.
    mutating func leaveRow() -> Int64? {
        guard isDecided else { return nil }
        let surplus = reserved - received
        notification = .none
        forget()
        revoke()
        return surplus
    }

    private mutating func removeReserved() -> Int64 {
        defer { reserved = 0 }
        return reserved
    }

    // MARK: Release for another store

    /// Whether the upload has to be loaded or settled before it can be released.
    var isClaimNeededForHoldRelease: Bool { isIdle && (!isLoaded || isSettlingNeeded) }

    /// Whether the last bytes are being made durable, and the target resource has not begun to process them.
    private var isAwaitingTarget: Bool { isProcessing && acknowledgment == .running && isRecorded }

    /// Whether no thread completes, removes or loads the upload.
    private var canReleaseHold: Bool {
        isLoaded && isUnfinished && !isSettlingNeeded && (activity == .idle || isAwaitingTarget)
    }

    /// A release in progress.
    struct HoldRelease: Hashable {
        /// The epoch of the lease that must not be interrupted (`hasLease`), or a new epoch that belongs to no lease.
        var epoch: Int64
        /// Whether a lease has the epoch: it waits for the storage, and is not ended before the deadline.
        var hasLease: Bool
        /// The time at which the upload is released although bytes are not durable.
        var deadline: Int64
    }

    enum HoldReleaseStart: Hashable {
        /// The upload is being loaded, completed or removed, or its lease waits for the storage: the other store
        /// repeats its request.
        case wait
        /// Make the received bytes durable, then end the release.
        case acknowledge(HoldRelease)
        /// The deadline has passed. End the release.
        case release(HoldRelease)
    }

    /// Another store requests the upload. Begins a release, or continues the last one. It ends the current lease,
    /// unless that lease waits for the storage.
    /// - Parameter deadline: the deadline of a release that begins now.
    mutating func beginHoldRelease(at now: Int64, until deadline: Int64) -> HoldReleaseStart {
        guard canReleaseHold else {
            if holdRelease?.hasLease ?? false { holdRelease = nil }
            return .wait
        }
        if let holdRelease, !holdRelease.hasLease { return .acknowledge(holdRelease) }
        let hasLease = isExclusive || isProcessing
        if let holdRelease, hasLease { return now < holdRelease.deadline ? .wait : .release(holdRelease) }
        if !hasLease { takeOver(exclusive: true) }
        let begun = HoldRelease(epoch: epoch, hasLease: hasLease, deadline: deadline)
        holdRelease = begun
        return hasLease ? .wait : .acknowledge(begun)
    }

    enum HoldReleaseEnd: Hashable {
        /// The other store gets the upload, so the row has to be read again.
        case released
        /// Another lease has begun, or a thread loads, completes or removes the upload: the other store repeats its
        /// request.
        case kept
    }

    /// Ends a release whose bytes are durable or cannot become durable, or whose deadline has passed.
    mutating func endHoldRelease(_ holdRelease: HoldRelease) -> HoldReleaseEnd {
        guard holdRelease.epoch == epoch, canReleaseHold else { return .kept }
        drop()
        return .released
    }

    enum HoldReleaseStep: Hashable {
        case wait
        /// Run the acknowledgment that is queued now.
        case acknowledge
        /// All received bytes are durable, or cannot become durable: then the other store begins at the offset in the
        /// row.
        case release
    }

    /// - Parameter hasQueued: whether an earlier step was `acknowledge`.
    mutating func continueHoldRelease(_ holdRelease: HoldRelease, hasQueued: Bool) -> HoldReleaseStep {
        let hasFailed = holdRelease.epoch != epoch || !hasBytes || hasQueued && acknowledgment == .idle
        if isAcknowledged || hasFailed { return .release }
        // An acknowledgment that the lease has queued can wait behind those of other uploads.
        if acknowledgment == .queued, !hasQueued { return .acknowledge }
        return queueAcknowledgment(as: holdRelease.epoch) == .notNeeded ? .wait : .acknowledge
    }

    /// Another store has acquired the upload after this store had read the row with this fence.
    mutating func holdLost(_ fence: Int64) { if isLoaded, self.fence == fence { drop() } }

    /// Drops the state, because another store may have changed the row and the bytes. The next request reads the row
    /// again. A thread that is completing or removing the upload ends the activity itself when the catalog has rejected
    /// its change.
    /// - Parameter failingLease: the lease whose call throws an error; nil if there is no such lease.
    mutating func drop(duringCallOf failingLease: Int64? = nil) {
        if failingLease == epoch { notification = .none }
        // The holder of the lease verifies staged bytes, or processes the upload. Its next call reports that the
        // lease has ended. If the holder is invalidating an upload with staged bytes, the catalog rejects that change.
        if activity == .processing || isSettling && isStaging { activity = .idle }
        (isLoaded, hasBytes, isDecided, isStaging, isProcessingRecorded) = (false, false, false, false, false)
        (written, received) = (durable, durable)
        revoke()
    }
}
