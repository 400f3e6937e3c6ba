// Received bytes become durable, and their offset is recorded in the row.
extension UploadMachine {
    /// Begins an acknowledgment that creates the row, without a lease.
    /// - Returns: nil if the upload has a row or has ended, or if another thread is about to create the row.
    mutating func beginRecording() -> Advance? {
        guard !isRecorded, hasBytes, isUnfinished, !isPublishing, acknowledgment != .running,
            activity == .idle || activity == .processing
        else { return nil }
        acknowledgment = .running
        return advance
    }

    /// The data that one acknowledgment makes durable.
    struct Advance: Hashable {
        var epoch: Int64
        var offset: Int64
        var hasNewBytes: Bool
        var length: Int64?
    }

    enum AcknowledgmentStep: Hashable {
        case wait
        /// Everything is durable up to this offset.
        case done(Int64)
        case run(Advance)
    }

    /// Whether the row records everything that was received.
    var isAcknowledged: Bool { durable >= received && isRowCurrent }

    private var advance: Advance {
        Advance(epoch: epoch, offset: received, hasNewBytes: received > durable, length: length)
    }

    /// - Parameter goal: the offset that has to become durable; nil for the first call, which sets it to the end of the
    ///   received bytes.
    mutating func acknowledge(_ goal: inout Int64?, as lease: Int64) throws(StoreError) -> AcknowledgmentStep {
        try require(lease)
        let end = goal ?? received
        goal = end
        if durable >= end && isRowCurrent { return .done(durable) }
        if acknowledgment == .running { return .wait }
        try requireBytes(lease)
        acknowledgment = .running
        return .run(advance)
    }

    /// - Returns: false if there is nothing to do, or an acknowledgment is in progress.
    mutating func queueAcknowledgment(as lease: Int64) -> Bool {
        guard refusal(of: lease) == nil, acknowledgment == .idle, activity == .idle,
            received > durable || !isRowCurrent
        else { return false }
        acknowledgment = .queued
        return true
    }

    /// Returns nil if the acknowledgment is not needed any more.
    mutating func runQueuedAcknowledgment() -> Advance? {
        guard acknowledgment == .queued, hasBytes else { return nil }
        acknowledgment = .running
        return advance
    }

    mutating func withdrawQueuedAcknowledgment() { if acknowledgment == .queued { acknowledgment = .idle } }

    mutating func acknowledged(_ advance: Advance) {
        acknowledgment = .idle
        // After `drop()` the row is read again, which has this offset or a later one.
        guard isLoaded else { return }
        durable = max(durable, advance.offset)
        recordedLength = advance.length
        if length == advance.length { isRowCurrent = true }
    }

    /// The bytes are durable, but the commit of the row failed, or its result is unknown. The commit can be repeated:
    /// the offset in a row never decreases.
    mutating func acknowledgmentFailed() { acknowledgment = .idle }

    /// The bytes could not be made durable. The kernel may have dropped pages, and a second attempt would not report
    /// this loss. So the bytes after the offset in the row are invalid, and the next request reads the row again.
    ///
    /// - Parameter failingLease: the lease whose call throws the error; nil if the acknowledgment ran in the
    ///   background.
    /// - Returns: whether the holder of the lease has to be notified.
    mutating func synchronizationFailed(duringCallOf failingLease: Int64?) -> Bool {
        let mustNotify = epoch != failingLease
        // The holder of the lease may be about to process or verify the last bytes. It checks its lease before that, so
        // the activity can be reset here.
        if activity == .processing && !isDecided || activity == .settling && isStaging { activity = .idle }
        acknowledgment = .idle
        (hasBytes, isStaging, received, written) = (false, false, durable, durable)
        revoke()
        return mustNotify
    }
}
