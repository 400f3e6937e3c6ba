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
struct UploadMachine: Hashable, Sendable {
    enum Activity: Hashable {
        case idle
        /// The row is read and the bytes are opened.
        case loading
        /// All content is received, and the target resource processes it. The upload cannot be taken over.
        case processing
        /// The upload is completed, invalidated or removed, or staged content is verified.
        case settling
    }

    enum Acknowledgment: Hashable {
        case idle
        /// The acknowledgment waits for a thread. A caller that needs it immediately runs it instead.
        case queued
        case running
    }

    private(set) var activity = Activity.idle
    /// The lease that began the processing.
    private(set) var processor: Int64 = 0
    /// Whether the bytes are being published, so that the publication alone changes the row.
    private(set) var isPublishing = false
    private(set) var acknowledgment = Acknowledgment.idle
    private(set) var epoch: Int64 = 0
    /// Whether others wait for the end of the current lease instead of taking the upload over.
    private(set) var isExclusive = false
    /// Tickets of the waiting requests, in the order in which they came.
    private(set) var waiting: [Int] = []

    /// Whether the row has been read.
    private(set) var isLoaded = false
    /// Whether the upload has a row at all. A plain upload has a row only while it replaces a file; an upload
    /// that is recorded late has none until its offset, its final response or the start of its processing has to be
    /// durable.
    private(set) var isRecorded = true
    private(set) var phase = UploadRecord.Phase.receiving
    /// Whether the row records that the target resource processes the upload.
    private(set) var isProcessingRecorded = false
    /// Whether the intent of a publication is durable, but its final response is not.
    private(set) var isDecided = false
    /// Whether the row is up to date, except for the offset.
    private(set) var isRowCurrent = true
    /// The length in the row.
    private(set) var recordedLength: Int64?

    /// Whether the bytes are open.
    private(set) var hasBytes = false
    /// The end of the written bytes, staged bytes included.
    private(set) var written: Int64 = 0
    /// The end of the received bytes: written, contiguous from 0, and not staged.
    private(set) var received: Int64 = 0
    /// The end of the durable bytes, which the row records durably: the offset that is reported to clients.
    private(set) var durable: Int64 = 0
    private(set) var isStaging = false
    private(set) var length: Int64?
    /// The number of bytes that the usage ledger counts for this upload.
    private(set) var reserved: Int64 = 0

    // MARK: Queries

    /// The reason why the lease of this epoch may no longer write; nil if it may.
    func refusal(of lease: Int64) -> StoreError? {
        guard lease == epoch else { return .superseded }
        return switch phase {
        case .complete: .completed
        case .invalid(let reason): .gone(reason: reason)
        case .receiving, .processing: isDecided ? .superseded : nil
        }
    }

    func require(_ lease: Int64) throws(StoreError) {
        if let refusal = refusal(of: lease) { throw refusal }
    }

    /// Does the same as ``require(_:)``, and also throws if the bytes are not open.
    func requireBytes(_ lease: Int64) throws(StoreError) {
        try require(lease)
        if !hasBytes { throw .invalidState("the bytes are not available any more") }
    }

    var isUnfinished: Bool {
        switch phase {
        case .receiving, .processing: true
        case .complete, .invalid: false
        }
    }

    /// Whether nothing is in progress that changes the row.
    var isIdle: Bool { activity == .idle && acknowledgment != .running }

    /// Whether a publication or a processing was interrupted. The next request has to finish it.
    var needsSettling: Bool { isDecided || isProcessingRecorded || phase == .processing }

    /// Whether the last bytes are being made durable, and the target resource has not begun to process them.
    private var isAwaitingTarget: Bool { activity == .processing && acknowledgment == .running && isRecorded }

    /// Whether the upload can be released for another store: no thread completes, removes or loads it.
    var canHandOver: Bool {
        isLoaded && isUnfinished && !needsSettling && (activity == .idle || isAwaitingTarget)
    }

    /// Whether the current lease must not be interrupted, unless it waits too long.
    var mustNotInterrupt: Bool { isExclusive || activity == .processing }

    private var needsLoading: Bool { !isLoaded || isUnfinished && !hasBytes && !needsSettling }

    /// The phase as clients see it.
    var visiblePhase: UploadRecord.Phase {
        phase == .receiving && (activity == .processing || needsSettling) ? .processing : phase
    }

    // MARK: Creation and loading

    /// A new upload.
    /// - Parameters:
    ///   - isRecorded: whether it has a row, which is durable.
    ///   - needsRow: whether its first acknowledgment or its end creates a missing row; false for a plain upload.
    mutating func begin(_ row: CatalogRow, reserved: Int64, isRecorded: Bool, needsRow: Bool = true) {
        (isLoaded, hasBytes, self.isRecorded) = (true, true, isRecorded)
        isRowCurrent = isRecorded || !needsRow
        (epoch, length, recordedLength, self.reserved) = (row.epoch, row.length, row.length, reserved)
    }

    /// The row was read. `hasBytes` is false if the upload has ended or is about to be removed.
    mutating func load(_ row: CatalogRow, hasBytes: Bool) {
        (isLoaded, isRecorded, self.hasBytes) = (true, true, hasBytes)
        (phase, isDecided, isRowCurrent) = (row.phase, row.intent != nil, true)
        (written, received, durable, isStaging) = (row.offset, row.offset, row.offset, false)
        (length, recordedLength) = (row.length, row.length)
        reserved = row.isUnfinished ? max(reserved, row.reservedBytes) : 0
        epoch = max(epoch, row.epoch)
        revoke()
        activity = .idle
    }

    // MARK: Use

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

    /// Allows other requests to take the lease over. Has no effect if the lease has ended.
    mutating func allowTakeOver(of lease: Int64) { if lease == epoch { isExclusive = false } }

    /// Ends the current lease.
    mutating func revoke() {
        epoch += 1
        isExclusive = false
    }

    /// Reserves `activity` for the holder of a lease.
    /// - Returns: false if the holder has to wait.
    mutating func enter(_ activity: Activity, as lease: Int64) throws(StoreError) -> Bool {
        try require(lease)
        guard self.activity == .idle || self.activity == .processing, acknowledgment != .running else { return false }
        acknowledgment = .idle
        self.activity = activity
        processor = lease
        return true
    }

    /// Ends the activity because it failed or was not needed.
    mutating func leaveActivity(for next: Activity = .idle) { activity = next }

    // MARK: Content

    /// - Returns: the end of `count` more bytes.
    func end(ofAppending count: Int, as lease: Int64) throws(StoreError) -> Int64 {
        try require(lease)
        guard activity == .idle, hasBytes else { throw .invalidState("the upload accepts no bytes now") }
        let (end, overflow) = written.addingReportingOverflow(Int64(count))
        if let length, overflow || end > length { throw .lengthExceeded(length: length) }
        return end
    }

    mutating func reserve(_ bytes: Int64) { reserved += bytes }

    mutating func append(_ count: Int) {
        written += Int64(count)
        if !isStaging { received = written }
    }

    /// The last bytes are written: from now on other requests wait. Staged bytes still have to be verified.
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

    /// - Returns: whether the caller must truncate the bytes after `received`.
    mutating func discardStaged(as lease: Int64) -> Bool {
        guard refusal(of: lease) == nil else { return false }
        // While the lease is held, no other thread settles the upload.
        if isStaging && activity == .settling { activity = .idle }
        return dropStaged()
    }

    private mutating func dropStaged() -> Bool {
        guard isStaging else { return false }
        isStaging = false
        written = received
        return true
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

    // MARK: Acknowledgment

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

    // MARK: Completion

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
    /// - Returns: false if the holder of the lease has to wait.
    mutating func beginPublishing(as lease: Int64) throws(StoreError) -> Bool {
        guard try enter(.processing, as: lease) else { return false }
        isPublishing = true
        return true
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

    /// The upload has ended, durably. Operations of its lease then throw `completed` or `gone`.
    /// - Returns: the number of bytes that were reserved.
    mutating func finish(as phase: UploadRecord.Phase) -> Int64 {
        self.phase = phase
        _ = dropStaged()
        if case .complete = phase { durable = received }
        (hasBytes, isDecided, isProcessingRecorded, isRowCurrent) = (false, false, false, true)
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
        /// The upload is in use, so the removal would have to wait.
        case busy
        /// Read the row, then remove the upload.
        case load
        case removable
    }

    /// Begins to remove an upload that has expired, without waiting.
    mutating func beginExpiry() -> Expiry {
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

    /// Another store may have changed the row and the bytes, so the row is read again. A thread that is completing or
    /// removing the upload ends the activity itself when the catalog has rejected its change.
    mutating func drop() {
        (isLoaded, hasBytes, isDecided, isStaging, isProcessingRecorded) = (false, false, false, false, false)
        (written, received) = (durable, durable)
        if activity == .processing, !isPublishing { activity = .idle }
        revoke()
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
