// The upload is completed, becomes invalid, expires or is removed.
extension UploadMachine {
    /// Reserves the upload for its end: its final response, or the reason for which it is invalid, becomes durable.
    mutating func beginEnding(as lease: Int64) throws(StoreError) -> Reservation {
        let isProcessing = activity == .processing
        guard try enter(.settling, as: lease) else { return .wait }
        endsProcessing = isProcessing
        return .granted(mustAcknowledge: false)
    }

    /// The end of the upload could not be made durable. If the target resource has run, the holder of the lease can try
    /// again to store its response. After the end of the lease nothing else would end the processing.
    mutating func endingFailed(as lease: Int64) {
        guard activity == .settling, processor == lease else { return }
        activity = endsProcessing && lease == epoch ? .processing : .idle
        endsProcessing = false
    }

    /// The upload has ended, durably. Operations of its lease then throw `completed` or `gone`.
    /// - Returns: the number of bytes that were reserved.
    mutating func finish(as phase: UploadRecord.Phase) -> Int64 {
        self.phase = phase
        _ = dropStaged()
        if case .complete = phase { durable = received }
        (hasBytes, isDecided, isProcessingRecorded, isRowCurrent) = (false, false, false, true)
        endsProcessing = false
        activity = .idle
        return removeReserved()
    }

    // MARK: Removal

    /// The upload is about to be removed: every lease has ended.
    /// - Returns: whether the caller must truncate the bytes after `received`.
    mutating func beginRemoval() -> Bool {
        activity = .settling
        defer { revoke() }
        return dropStaged()
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
        return needsSettling || !isUnfinished ? .busy : .removable
    }

    /// Drops a queued acknowledgment before the row is removed.
    /// - Returns: false if an acknowledgment is running: the caller waits and tries again.
    mutating func endAcknowledging() -> Bool {
        if acknowledgment == .running { return false }
        acknowledgment = .idle
        return true
    }

    /// The row could not be removed.
    mutating func removalFailed() { if activity == .settling { activity = .idle } }

    /// The row and the bytes were removed, or belong to another object from now on.
    /// - Returns: the number of bytes that were reserved.
    @discardableResult
    mutating func forget() -> Int64 {
        (isLoaded, hasBytes, isDecided, isStaging) = (false, false, false, false)
        (received, written, durable) = (0, 0, 0)
        activity = .idle
        return removeReserved()
    }

    /// Ends an upload that has no row, or a plain upload, whose row ends with its lease.
    /// - Returns: the epoch of the lease that ended, and the number of bytes that were reserved; nil if the upload has
    ///   ended already, or has a row.
    mutating func endWithoutRow(isTransient: Bool) -> (epoch: Int64, reserved: Int64)? {
        guard isLoaded, isUnfinished, isTransient || !isRecorded else { return nil }
        defer { revoke() }
        return (epoch, forget())
    }

    /// The row of a decided publication remains for the sweep, and protects the bytes.
    /// - Returns: the number of bytes that were reserved beyond the received bytes; nil if nothing was decided.
    mutating func leaveRow() -> Int64? {
        guard isDecided else { return nil }
        let surplus = reserved - received
        forget()
        revoke()
        return surplus
    }

    private mutating func removeReserved() -> Int64 {
        defer { reserved = 0 }
        return reserved
    }

    /// Releases the bytes that are reserved beyond the length or the offset in the row, and returns their number. The
    /// next ``OpenUpload`` of this upload begins with the length or the offset in the row.
    mutating func removeSurplus() -> Int64 {
        guard isLoaded, isUnfinished else { return 0 }
        let needed = recordedLength ?? durable
        defer { reserved = needed }
        return reserved - needed
    }
}
