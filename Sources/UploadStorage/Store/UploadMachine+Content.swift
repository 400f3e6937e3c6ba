// The bytes that a lease writes, their reservation, and how they become durable.
extension UploadMachine {
    /// Checks whether the lease may append `count` bytes, and ends its waiting.
    /// - Returns: the offset after these bytes.
    mutating func beginAppending(_ count: Int, as lease: Int64) throws(StoreError) -> Int64 {
        try require(lease)
        isHolderWaiting = false
        guard activity == .idle, hasBytes else { throw .invalidState("the upload accepts no bytes now") }
        let (end, overflow) = written.addingReportingOverflow(Int64(count))
        if let length, overflow || end > length { throw .lengthExceeded(length: length) }
        return end
    }

    /// The number of bytes that have to be reserved before bytes up to this end are appended. The bytes of an upload of
    /// known length are reserved with the length.
    func missingReservation(upTo end: Int64) -> Int64 { length == nil ? max(0, end - reserved) : 0 }

    mutating func reserve(_ bytes: Int64) { reserved += bytes }

    mutating func append(_ count: Int) {
        written += Int64(count)
        if !isStaging { received = written }
    }

    /// Records that the holder waits until more bytes can be appended or its call fails.
    mutating func appendingStopped() { isHolderWaiting = true }

    /// The last bytes are written: from now on other requests wait. If the bytes are staged, they have to be verified
    /// before the processing.
    mutating func endContent() {
        activity = isStaging ? .settling : .processing
        processor = epoch
    }

    mutating func beginStaging(as lease: Int64) throws(StoreError) {
        try require(lease)
        if isStaging { throw .invalidState("staging has begun already") }
        isStaging = true
    }

    mutating func commitStaged(as lease: Int64) throws(StoreError) {
        try require(lease)
        isStaging = false
        received = written
        if activity == .settling { activity = .processing }
    }

    /// `OpenUpload` truncates the bytes after `received` when staging has ended without ``commitStaged(as:)``.
    mutating func discardStaged(as lease: Int64) {
        guard refusal(of: lease) == nil else { return }
        // While the lease is held, no other thread settles the upload.
        if isStaging && isSettling { activity = .idle }
        dropStaged()
    }

    mutating func dropStaged() {
        if isStaging { canHaveRemovedBytes = true }
        isStaging = false
        written = received
    }

    /// - Returns: the bytes that have to be reserved first; nil if the length is known already.
    func reservation(forLength length: Int64, as lease: Int64) throws(StoreError) -> Int64? {
        try require(lease)
        if self.length == length { return nil }
        guard self.length == nil, length >= 0, length >= written else {
            throw .invalidState("the length contradicts an earlier length or the received bytes")
        }
        return max(0, length - reserved)
    }

    mutating func setLength(_ length: Int64) {
        self.length = length
        if isRecorded { isRowCurrent = false }
    }

    /// Releases the bytes that are reserved beyond the length or the offset in the row, and returns their number. The
    /// next ``OpenUpload`` of this upload begins with only that length or offset reserved.
    /// - Returns: nil if the upload is not loaded or has ended.
    mutating func removeSurplus() -> Int64? {
        guard isLoaded, isUnfinished else { return nil }
        let needed = recordedLength ?? durable
        defer { reserved = needed }
        return reserved - needed
    }

    // MARK: Acknowledgment

    /// Begins an acknowledgment that creates the row, without a lease.
    /// - Returns: nil if the upload has a row or has ended, or if another thread is about to create the row.
    mutating func beginRecording() -> Advance? {
        guard !isRecorded, hasBytes, isUnfinished, acknowledgment != .running,
            activity == .idle || activity == .processing
        else { return nil }
        return beginAdvance()
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

    private mutating func beginAdvance() -> Advance {
        acknowledgment = .running
        let hasNewBytes = received > durable
        if hasNewBytes { canHaveRemovedBytes = false }
        return Advance(epoch: epoch, offset: received, hasNewBytes: hasNewBytes, length: length)
    }

    /// - Parameter goal: the offset that has to become durable; nil for the first call, which sets it to the end of the
    ///   received bytes.
    mutating func acknowledge(_ goal: inout Int64?, as lease: Int64) throws(StoreError) -> AcknowledgmentStep {
        try require(lease)
        let end = goal ?? received
        goal = end
        isHolderWaiting = false
        if durable >= end && isRowCurrent { return .done(durable) }
        if acknowledgment == .running {
            isHolderWaiting = true
            return .wait
        }
        try requireBytes(lease)
        return .run(beginAdvance())
    }

    enum Queueing: Hashable {
        /// - Parameter newBytes: the number of received bytes that are not durable.
        case queued(newBytes: Int64)
        /// There is nothing to do, or an acknowledgment is in progress.
        case notNeeded
    }

    mutating func queueAcknowledgment(as lease: Int64) -> Queueing {
        guard refusal(of: lease) == nil, acknowledgment == .idle, activity == .idle,
            received > durable || !isRowCurrent
        else { return .notNeeded }
        acknowledgment = .queued
        return .queued(newBytes: received - durable)
    }

    /// Returns nil if the acknowledgment is not needed any more.
    mutating func runQueuedAcknowledgment() -> Advance? {
        guard acknowledgment == .queued, hasBytes else { return nil }
        return beginAdvance()
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

    /// Records that the bytes are durable, but the commit of the row failed, or its result is unknown. The commit can
    /// be repeated: the offset in a row never decreases.
    mutating func acknowledgmentFailed() { acknowledgment = .idle }

    /// The bytes could not be made durable. The kernel may have dropped pages, and a second attempt would not report
    /// this loss. So the bytes after the offset in the row are invalid, and the next request reads the row again.
    ///
    /// - Parameters:
    ///   - failingLease: the lease whose call throws the error; nil if the acknowledgment ran in the background.
    ///   - isAwaited: whether the holder of the lease checks for the failure regularly, even while its client sends
    ///     nothing.
    mutating func synchronizationFailed(
        _ error: StoreError, duringCallOf failingLease: Int64?, isAwaited: Bool
    ) {
        let isReported = isHolderWaiting || isAwaited
        if isReported { failure = Failure(lease: epoch, error: error) }
        if isReported || failingLease == epoch { notification = .none }
        // The holder of the lease may be about to process or verify the last bytes. It checks its lease before that, so
        // the activity can be reset here.
        if isProcessing && !isDecided || isSettling && isStaging { activity = .idle }
        acknowledgment = .idle
        (hasBytes, isStaging, received, written) = (false, false, durable, durable)
        revoke()
    }
}
