// Requests that wait for the upload, its leases, and its hand-over to another store.
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
        if activity == .processing, isLate {
            // Returned only after all received bytes are durable, because the caller reports `durable` as the offset.
            if isRecorded, durable >= received {
                leave(ticket)
                return .stillProcessing
            }
            if let advance = beginRecording() { return .record(advance) }
        }
        guard waiting.first == ticket, activity == .idle, !isExclusive else { return .wait }
        if needsLoading || needsSettling {
            // Loading drops bytes that are not acknowledged. If a running acknowledgment of these bytes ended later, it
            // would raise `durable` after new bytes have replaced them.
            if acknowledgment == .running { return .wait }
            acknowledgment = .idle
            activity = needsLoading ? .loading : .settling
            return activity == .loading ? .load : .settle
        }
        leave(ticket)
        return .granted
    }

    /// Ends the current lease and raises `epoch`, whose new value belongs to the new lease.
    ///
    /// - Parameter exclusive: whether other requests wait for the end of the new lease.
    /// - Returns: whether the caller must truncate the bytes after `received`.
    mutating func takeOver(exclusive: Bool) -> Bool {
        let mustTruncate = dropStaged()
        revoke()
        isExclusive = exclusive
        return mustTruncate
    }

    /// Allows other requests to take the lease over.
    /// - Returns: false if the lease has ended.
    @discardableResult
    mutating func allowTakeOver(of lease: Int64) -> Bool {
        guard lease == epoch else { return false }
        isExclusive = false
        return true
    }

    /// Ends the current lease.
    mutating func revoke() {
        epoch += 1
        isExclusive = false
    }

    enum Release: Hashable {
        /// The lease has ended already.
        case superseded
        /// Store the response for an interrupted processing, acknowledge the received bytes, then end the release.
        case completeAsInterrupted
        /// Acknowledge the received bytes, then end the release.
        case acknowledge
    }

    /// The holder of the lease does not use it any more. The caller has discarded staged bytes.
    mutating func beginRelease(of lease: Int64) -> Release {
        guard lease == epoch else { return .superseded }
        if activity == .processing, isProcessingRecorded { return .completeAsInterrupted }
        _ = endProcessing(as: lease)
        return .acknowledge
    }

    /// If the interruption of the processing could not be recorded, the next request does that.
    mutating func endRelease(of lease: Int64) {
        if activity == .processing, processor == lease { activity = .idle }
        if lease == epoch { revoke() }
    }

    // MARK: Hand-over to another store

    /// Whether the upload has to be loaded or settled before it can be handed over.
    var needsClaimForHandOver: Bool { isIdle && (!isLoaded || needsSettling) }

    /// Whether the last bytes are being made durable, and the target resource has not begun to process them.
    private var isAwaitingTarget: Bool { activity == .processing && acknowledgment == .running && isRecorded }

    /// Whether the upload can be released for another store: no thread completes, removes or loads it.
    var canHandOver: Bool {
        isLoaded && isUnfinished && !needsSettling && (activity == .idle || isAwaitingTarget)
    }

    enum HandOver: Hashable {
        /// The upload is being loaded, completed or removed.
        case busy
        /// The current lease waits for the storage, and is not ended before the deadline of the hand-over.
        case postponed
        /// It has begun already, with this epoch.
        case continued
        /// The last lease has ended. No lease has the new epoch.
        case begun(mustTruncate: Bool)
    }

    /// - Parameter last: the epoch of the last hand-over that began.
    mutating func beginHandOver(after last: Int64?) -> HandOver {
        guard canHandOver else { return .busy }
        if last == epoch { return .continued }
        if isExclusive || activity == .processing { return .postponed }
        return .begun(mustTruncate: takeOver(exclusive: true))
    }

    enum HandOverStep: Hashable {
        case wait
        /// Run the acknowledgment that is queued now.
        case acknowledge
        /// All received bytes are durable, or cannot become durable: then the other store begins at the offset in the
        /// row.
        case release
    }

    /// - Parameter hasQueued: whether an earlier step was `acknowledge`.
    mutating func continueHandOver(of handedOver: Int64, hasQueued: Bool) -> HandOverStep {
        let hasFailed = handedOver != epoch || !hasBytes || hasQueued && acknowledgment == .idle
        if isAcknowledged || hasFailed { return .release }
        return queueAcknowledgment(as: handedOver) ? .acknowledge : .wait
    }

    /// Another store may have changed the row and the bytes, so the row is read again. A thread that is completing or
    /// removing the upload ends the activity itself when the catalog has rejected its change.
    mutating func drop() {
        // The holder of the lease verifies staged bytes, or processes the upload, and learns from its next call that the
        // lease has ended. If it is invalidating an upload with staged bytes, the catalog rejects that change.
        if activity == .processing && !isPublishing || activity == .settling && isStaging { activity = .idle }
        (isLoaded, hasBytes, isDecided, isStaging, isProcessingRecorded) = (false, false, false, false, false)
        (written, received) = (durable, durable)
        revoke()
    }
}
