import Synchronization
import SystemCalls

/// The right to write to one upload, until another request takes the upload over.
///
/// Only one thread may use a lease, but any thread may read ``isCurrent`` and the offsets, or end the lease. After the
/// end of the lease every operation fails with ``StoreError/superseded`` before it changes anything.
package final class UploadLease: Sendable {
    let upload: OpenUpload
    let epoch: Int64
    /// The use of the upload; nil once the lease is released.
    private let use: Mutex<UploadUse?>
    let registry: UploadRegistry
    /// The state of the upload when the lease began.
    package let record: UploadRecord

    init(_ use: UploadUse, epoch: Int64, record: UploadRecord) {
        upload = use.upload
        registry = use.registry
        self.use = Mutex(use)
        self.epoch = epoch
        self.record = record
    }

    deinit { release() }

    var context: StoreContext { upload.context }

    /// The ID of the upload; nil for a plain upload, which has no upload resource.
    package var id: UploadID? { upload.isTransient ? nil : upload.id }

    /// Identifies the upload, and gives no access to it.
    package var fingerprint: String { upload.id.fingerprint }

    /// The number of received bytes, contiguous from 0, without staged bytes.
    package var received: Int64 { upload.machine.received }

    /// The number of durable bytes: the offset that may be reported to the client.
    package var acknowledged: Int64 { upload.machine.durable }

    /// The offset that an error response may report; nil if the upload has no row, so that a crash could still remove
    /// it.
    package var reportableOffset: Int64? { upload.hasDurableRow ? acknowledged : nil }

    /// Whether the URL of the upload may be sent: all stores that share the catalog can find the upload. If only
    /// one store uses the catalog, it needs no row for that.
    package var isFindable: Bool { !context.catalog.isShared || upload.hasDurableRow }

    /// Whether the lease is valid: the upload has not been taken over.
    package var isCurrent: Bool { upload.machine.isCurrent(epoch) }

    /// Whether ``failure`` can be set while no method of the lease is called.
    package var canFail: Bool { context.catalog.isShared }

    /// The error with which the storage has ended the lease; nil if it has not.
    package var failure: StoreError? { upload.machine.failure(of: epoch) }

    /// Sets a closure that is called once when the upload is taken over, on the thread of the other request. If the
    /// upload has been taken over already, the closure is called immediately. The closure must not wait for the thread
    /// of this lease. From now on, other requests do not wait for the end of an exclusive lease.
    package func onRevocation(_ closure: @escaping @Sendable () -> Void) {
        let isCurrent = upload.update { state in
            state.machine.observe(epoch)
            guard state.machine.isCurrent(epoch) else { return false }
            state.revocation = closure
            return true
        }
        if !isCurrent { closure() }
    }

    // MARK: Acknowledgment

    /// Starts to make all received bytes durable on another thread. Does nothing if such an acknowledgment is in
    /// progress.
    package func startAcknowledging() {
        if upload.isTransient { return }
        let queueing = upload.monitor.withLock { $0.machine.queueAcknowledgment(as: epoch) }
        guard case .queued(let newBytes) = queueing else { return }
        // A shared storage can stall for one upload, so no other upload waits for it. Its catalog combines changes itself.
        let use = use.withLock { $0 }
        guard !context.catalog.isShared && newBytes < GatheredAcknowledgments.maxSize else {
            return upload.enqueueAcknowledgment(use, on: context.acknowledging)
        }
        registry.gathering.add(upload, use)
    }

    /// Waits until all bytes received so far are durable, and returns the offset.
    ///
    /// If the bytes cannot be synchronized, the lease ends, and the next lease starts at the last durable offset.
    package func acknowledge() throws(StoreError) -> Int64 { try upload.acknowledge(as: epoch) }

    // MARK: Release

    /// Ends the lease. If the target is processing the upload, the processing counts as interrupted. Received bytes are
    /// made durable; the bytes of a plain upload are removed.
    package func release() {
        guard let use = use.withLock({ $0.take() }) else { return }
        defer { withExtendedLifetime(use) {} }
        switch upload.update({ $0.machine.beginRelease(of: epoch) }) {
        case .done: return
        case .completeAsInterrupted: _ = try? completeAsInterrupted()
        case .acknowledge: break
        }
        if !upload.isTransient { _ = try? acknowledge() }
        upload.update { $0.machine.endRelease(of: epoch) }
    }
}

// Appending bytes.
extension UploadLease {
    private static let reservationStep: Int64 = 1 << 20
    private static let smallPart = 32 << 10
    private static let digestStep: Int64 = 1 << 20
    private static let digestBudget: Int64 = 8 << 20
    /// The number of bytes by which digests may be behind with a shared storage, which keeps at least 8 MiB in memory.
    private static let maxDigestLag: Int64 = 4 << 20

    /// Appends bytes to the upload. After an error, ``received`` may include a prefix of them.
    ///
    /// - Parameter isLast: whether these are the last bytes. Once they are written, the upload cannot be taken over
    ///   any more, and the caller must call ``beginProcessing(shouldMarkDurably:)`` or ``endProcessing()``.
    package func append(_ bytes: UnsafeRawBufferPointer, completes isLast: Bool = false) throws(StoreError) {
        do throws(StoreError) { try appendAtOnce(bytes, completes: isLast) } catch {
            guard case .quotaExceeded = error, bytes.count > Self.smallPart else { throw error }
            // Nothing was appended. The bytes are appended again in small parts, until the quota is nearly full.
            var remaining = bytes
            while !remaining.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: remaining.prefix(Self.smallPart))
                remaining = UnsafeRawBufferPointer(rebasing: remaining[part.count...])
                try appendAtOnce(part, completes: isLast && remaining.isEmpty)
            }
        }
    }

    private func appendAtOnce(_ bytes: UnsafeRawBufferPointer, completes isLast: Bool) throws(StoreError) {
        try awaitReservation(upTo: { $0.written + Int64(bytes.count) }, spare: Self.reservationStep)
        var remaining = bytes
        while true {
            let (fullBlob, isBehind) = try upload.monitor.withLock {
                (state) throws(StoreError) -> ((any Blob)?, Bool) in
                let end = try state.machine.beginAppending(remaining.count, as: epoch)
                guard let blob = state.blob else { throw .invalidState("the bytes are not available any more") }
                try reserve(upTo: end, &state)
                try requireSpace(upTo: end, &state)
                while !remaining.isEmpty {
                    let count: Int
                    do throws(StoreError) { count = try write(remaining, to: blob, at: state.machine.written) } catch {
                        state.machine.appendingStopped()
                        throw error
                    }
                    if count == 0 {
                        state.machine.appendingStopped()
                        return (blob, false)
                    }
                    remaining = UnsafeRawBufferPointer(rebasing: remaining[count...])
                    state.machine.append(count)
                }
                if isLast { state.machine.endContent() }
                return (nil, needsBackgroundWork(state))
            }
            guard let fullBlob else {
                if isBehind { applyBackpressure(afterAppending: bytes.count) }
                return
            }
            // Another request can take the upload over meanwhile.
            fullBlob.awaitRoom()
        }
    }

    /// Prepares a reservation without the lock: waits until the usage of the principal has been counted and, with a quota
    /// in a shared catalog, reserves the bytes of an upload of unknown length.
    private func awaitReservation(upTo end: (UploadMachine) -> Int64, spare: Int64 = 0) throws(StoreError) {
        if !context.ledger.canReserve {
            let machine = upload.machine
            if machine.missingReservation(upTo: end(machine)) > 0 { context.ledger.waitUntilCounted() }
        }
        try reserveShared(upTo: end, spare: spare)
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, to blob: any Blob, at offset: Int64
    ) throws(StoreError) -> Int {
        do throws(Errno) { return try blob.write(bytes, at: offset) } catch {
            throw .failure(error, during: "write the content of an upload")
        }
    }

    /// Counts bytes of an upload of unknown length against the quota, in steps.
    private func reserve(upTo end: Int64, _ state: inout OpenUpload.State) throws(StoreError) {
        let missing = state.machine.missingReservation(upTo: end)
        guard missing > 0 else { return }
        for step in [max(Self.reservationStep, missing), missing] {
            do throws(StoreError) { return try reserve(step, &state) } catch {
                // Near the limit only the exact number may fit.
                if step == missing { throw error }
            }
        }
    }

    private func reserve(_ bytes: Int64, _ state: inout OpenUpload.State) throws(StoreError) {
        try context.ledger.reserve(bytes, for: state.principal)
        state.machine.reserve(bytes)
    }

    /// With a quota in a shared catalog: reserves the missing bytes up to `end` of an upload of unknown length. If they are
    /// fewer than `spare`, reserves `spare` bytes, or as many as the quota has room for. The lock is not held while the
    /// usage is read.
    private func reserveShared(upTo end: (UploadMachine) -> Int64, spare: Int64) throws(StoreError) {
        guard context.catalog.isShared, let quota = context.configuration.quotaPerPrincipal else { return }
        var isAcknowledged = upload.isTransient
        while true {
            let state = upload.snapshot
            let (machine, principal) = (state.machine, state.principal)
            let missing = machine.missingReservation(upTo: end(machine))
            guard missing > 0 else { return }
            let used: Int64
            do throws(StoreError) {
                used = try context.catalog.sharedUsage(of: principal)[principal]?.bytes ?? 0
            } catch {
                // The catalog checks the quota again when it records the bytes.
                if case .unavailable = error, !upload.isTransient { return }
                throw error
            }
            // The row of an upload contains its durable bytes. A plain upload has no row.
            let free = quota - used - (machine.reserved - (upload.isTransient ? 0 : machine.durable))
            if free >= missing {
                return try upload.update { (state) throws(StoreError) in
                    try state.machine.require(epoch)
                    try reserve(min(max(missing, spare), free), &state)
                }
            }
            if isAcknowledged { throw .quotaExceeded(limit: quota) }
            // Bytes that have become durable meanwhile were counted twice.
            _ = try acknowledge()
            isAcknowledged = true
        }
    }

    /// Throws if the bytes would use the space that the catalog needs, which is on the same disk.
    private func requireSpace(upTo end: Int64, _ state: inout OpenUpload.State) throws(StoreError) {
        guard end > state.pace.spaceCheckedUpTo else { return }
        let space = try translating("read the free space") { () throws(Errno) in try context.area.space() }
        let floor = context.floor(of: space)
        if let shortage = context.shortage(free: space.free, kept: floor) { throw .insufficientSpace(shortage) }
        state.pace.spaceChecked(upTo: end, spare: space.free - floor)
    }

    private func needsBackgroundWork(_ state: OpenUpload.State) -> Bool {
        let machine = state.machine
        if context.shouldSynchronize && state.pace.isDue(machine.written) { return true }
        if !state.digests.isEmpty && machine.received - state.digests.covered >= Self.digestStep { return true }
        guard let staged = state.stagedDigests, !staged.isEmpty else { return false }
        return machine.written - staged.covered >= Self.digestStep
    }

    /// Starts digests and write-back in the background, and blocks the receiving thread while too many bytes are not on
    /// the disk yet, or not in the digests.
    private func applyBackpressure(afterAppending count: Int) {
        let (blob, late) = upload.monitor.withLock { state -> ((any Blob)?, [(DigestTracker, end: Int64)]) in
            guard state.machine.refusal(of: epoch) == nil, let blob = state.blob else { return (nil, []) }
            schedule(state.digests, over: blob, isStaged: false)
            if let staged = state.stagedDigests { schedule(staged, over: blob, isStaged: true) }
            if context.shouldSynchronize, let part = state.pace.startNext(upTo: state.machine.written) {
                context.writeBack.enqueue {
                    blob.startWriteBack(at: part.lowerBound, count: part.upperBound - part.lowerBound)
                }
            }
            return (blob, lateDigests(state))
        }
        guard let blob else { return }
        for (tracker, end) in late {
            // The budget is larger than the number of bytes that have arrived, so the digest catches up. An error occurs
            // again when the digest is needed.
            _ = try? tracker.advance(over: blob, to: end, budget: 2 * Int64(count))
        }
        guard context.shouldSynchronize else { return }
        var awaited: Int64?
        while let start = nextToAwait(after: awaited) {
            blob.awaitWriteBack(at: start, count: WritePace.step)
            awaited = start
        }
    }

    /// The digests that have to advance before more bytes are received, with the ends of their bytes. Otherwise a shared
    /// storage would have to send the bytes back, and the end of the upload would wait for that.
    private func lateDigests(_ state: OpenUpload.State) -> [(DigestTracker, end: Int64)] {
        guard context.catalog.isShared else { return [] }
        let (received, staged) = (state.machine.received, state.machine.written)
        return [(state.digests, end: received), (state.stagedDigests ?? .none, end: staged)].filter { tracker, end in
            !tracker.isEmpty && end - tracker.covered > Self.maxDigestLag
        }
    }

    /// Returns the start of the part whose write-back has to be awaited before more bytes are received; nil if there is
    /// none.
    /// - Parameter awaited: the start of the part whose write-back has just ended.
    private func nextToAwait(after awaited: Int64?) -> Int64? {
        upload.monitor.withLock { state in
            guard state.machine.refusal(of: epoch) == nil else { return nil }
            if let awaited { state.pace.noteAwaited(from: awaited) }
            return state.pace.nextToAwait(
                state.machine.written, durable: state.machine.durable, window: context.configuration.writeBackWindow)
        }
    }

    private func schedule(_ tracker: DigestTracker, over blob: any Blob, isStaged: Bool) {
        guard !tracker.isEmpty,
            tracker.isScheduled.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        context.digesting.enqueue { [upload] in
            let state = upload.snapshot
            // The state to which the tracker belongs may have been reset.
            if tracker === (isStaged ? state.stagedDigests : state.digests) {
                let end = isStaged ? state.machine.written : state.machine.received
                // If this fails, the error occurs again when the digest is needed.
                _ = try? tracker.advance(over: blob, to: end, budget: Self.digestBudget)
            }
            tracker.isScheduled.store(false, ordering: .releasing)
        }
    }

    /// Sets the length of the representation, which cannot change later. The length is durable when ``acknowledge()``
    /// returns.
    package func setLength(_ length: Int64) throws(StoreError) {
        try awaitReservation(upTo: { _ in length })
        try upload.update { (state) throws(StoreError) in
            guard let missing = try state.machine.reservation(forLength: length, as: epoch) else { return }
            if missing > 0 { try reserve(missing, &state) }
            state.machine.setLength(length)
        }
    }
}

/// Decides when the free space is checked for the bytes of one upload, when their write-back to the disk starts, and
/// when the receiving thread has to wait for it.
struct WritePace: Hashable {
    /// The number of free bytes that are reserved for the catalog.
    static let catalogRoom: Int64 = 64 << 20
    /// The number of bytes whose write-back starts, or is awaited, together.
    static let step: Int64 = 4 << 20
    private static let spaceStep: Int64 = 4 << 20

    /// The offset up to which bytes may be written before the free space is checked again.
    private(set) var spaceCheckedUpTo: Int64 = 0
    /// The offset up to which the write-back has started.
    private var started: Int64
    /// The offset up to which the end of the write-back was awaited.
    private var awaited: Int64

    /// - Parameter start: the number of bytes that are durable already.
    init(start: Int64 = 0) {
        started = start
        awaited = start
    }

    /// Records that there is enough space for bytes up to `end`.
    /// - Parameter spare: the number of free bytes minus the number that must stay free. The smaller it is, the sooner
    ///   the space is checked again.
    mutating func spaceChecked(upTo end: Int64, spare: Int64) {
        spaceCheckedUpTo = end + min(Self.spaceStep, spare / 4)
    }

    /// Returns whether the write-back of the next bytes should start.
    /// - Parameter written: the number of bytes that are written to the file.
    func isDue(_ written: Int64) -> Bool { written - started >= Self.step }

    /// Returns the range of bytes whose write-back starts now; nil if there are too few bytes.
    mutating func startNext(upTo written: Int64) -> Range<Int64>? {
        guard isDue(written) else { return nil }
        defer { started = written }
        return started..<written
    }

    /// Returns the start of the part whose write-back must end before more bytes are received; nil if at most `window`
    /// bytes are not on the disk yet.
    func nextToAwait(_ written: Int64, durable: Int64, window: Int64) -> Int64? {
        let start = max(awaited, durable)
        return written - start > window ? start : nil
    }

    /// Records that the write-back of the part that begins at `start` has ended.
    mutating func noteAwaited(from start: Int64) { awaited = start + Self.step }

    /// Adjusts the values after bytes beyond `end` were removed.
    mutating func limit(to end: Int64) {
        started = min(started, end)
        awaited = min(awaited, end)
    }
}
