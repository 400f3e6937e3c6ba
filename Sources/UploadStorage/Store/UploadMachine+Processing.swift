// The target resource processes the upload, or the upload is published as a file.
extension UploadMachine {
    /// The result of an event that reserves the end of the upload for the holder of a lease.
    enum Reservation: Hashable {
        /// Another thread completes or removes the upload, or an acknowledgment is running.
        case wait
        /// - Parameter mustAcknowledge: whether all received bytes have to become durable first.
        case granted(mustAcknowledge: Bool)
    }

    /// All content is received. The caller acknowledges it if that is necessary, and then calls the target resource.
    mutating func beginProcessing(as lease: Int64, marksDurably: Bool) throws(StoreError) -> Reservation {
        try require(lease)
        if isStaging { throw .invalidState("staged bytes are neither committed nor discarded") }
        guard try enter(.processing, as: lease) else { return .wait }
        // A target that can run again needs no row: after a crash, the client uploads the short content again.
        return .granted(mustAcknowledge: marksDurably || isRecorded)
    }

    /// The row now records that the target resource processes the upload.
    mutating func mark() { isProcessingRecorded = true }

    /// The row may record that the target resource processes the upload, although the target was not called. The next
    /// acknowledgment resets it.
    mutating func markFailed() { if isRecorded && isUnfinished { isRowCurrent = false } }

    /// The target resource has not processed the upload. A later request can call it.
    /// - Returns: whether an acknowledgment has to reset the row.
    mutating func unmark(as lease: Int64) -> Bool {
        guard lease == epoch, activity == .processing, isProcessingRecorded else { return false }
        isProcessingRecorded = false
        isRowCurrent = false
        return true
    }

    /// The processing could not begin, and the target resource was not called. The row may be marked or not; the next
    /// acknowledgment resets it.
    mutating func processingFailed(as lease: Int64) {
        // After a failed synchronization the lease has ended, and a later lease may be processing. Closing the store
        // also ends the lease, but the activity still belongs to that lease.
        guard activity == .processing, processor == lease else { return }
        activity = .idle
        if isRecorded { isRowCurrent = false }
    }

    /// Ends the processing without having called the target resource.
    /// - Returns: whether an acknowledgment has to reset the row.
    mutating func endProcessing(as lease: Int64) -> Bool {
        guard lease == epoch, activity == .processing else { return false }
        let wasProcessingRecorded = isProcessingRecorded
        isProcessingRecorded = false
        activity = .idle
        if wasProcessingRecorded { isRowCurrent = false }
        return wasProcessingRecorded
    }

    /// Reserves the row for a publication: from now on only the publication changes it.
    mutating func beginPublishing(as lease: Int64) throws(StoreError) -> Reservation {
        guard try enter(.processing, as: lease) else { return .wait }
        isPublishing = true
        return .granted(mustAcknowledge: isRecorded)
    }

    mutating func endPublishing() {
        isPublishing = false
        // The upload was dropped meanwhile.
        if !isLoaded, activity == .processing { activity = .idle }
    }

    /// A publication is durably decided: it will be carried out or refused, also after a crash.
    mutating func decide() { isDecided = true }

    /// The upload has a row from now on, which records this offset durably.
    mutating func record(offset: Int64) {
        isRecorded = true
        durable = max(durable, offset)
    }

    /// Notes that the row of the upload was removed.
    mutating func clearRecord() { (isRecorded, isDecided) = (false, false) }

    /// The holder of the lease could not complete a decided publication. The next request completes it.
    mutating func leaveDecided() {
        guard isDecided else { return }
        activity = .idle
        revoke()
    }

    /// - Returns: false if the holder has to wait.
    mutating func enter(_ activity: Activity, as lease: Int64) throws(StoreError) -> Bool {
        try require(lease)
        guard self.activity == .idle || self.activity == .processing, acknowledgment != .running else { return false }
        acknowledgment = .idle
        self.activity = activity
        processor = lease
        return true
    }
}
