import ResumableUpload
import Synchronization
import SystemCalls

/// One upload that is in use: the only place where its offsets change.
///
/// Everything is behind one monitor. Rules that keep it free of deadlocks and of stale numbers:
///
/// - While the monitor is held, nothing is waited for but a write or a truncation of the blob. Synchronization,
///   catalog commits and revocation closures run outside. The ledger and the trackers are inner locks.
/// - `epoch` is the fence. Raising it voids the lease that is out; whoever comes back from a wait compares again.
/// - One acknowledgment runs at a time, whoever asked. It belongs to the upload, not to a lease: what it makes durable
///   is durable for the next holder, too.
/// - `activity` other than idle means that somebody alone decides what becomes of the upload; all others wait.
/// - Always `durable` ≤ `received` ≤ `written`, and a row's offset never passes what has been synchronized.
final class OpenUpload: Sendable {
    let id: UploadID
    /// Bytes without a row, but for one while they replace a file.
    let isTransient: Bool
    let store: UploadStore
    let monitor: Monitor<State>

    // Copies for readers without the lock; written with the lock held.
    let epochMirror = Atomic<Int64>(0)
    let receivedMirror = Atomic<Int64>(0)
    let durableMirror = Atomic<Int64>(0)

    enum Activity {
        case idle
        /// The row is being read and the blob opened.
        case loading
        /// The target resource works on it: nobody takes the lease away.
        case processing
        /// It is being completed, invalidated or removed.
        case settling
    }

    enum Acknowledgment {
        case idle
        /// Waits for a thread; whoever needs it at once may take it.
        case queued
        case running
    }

    /// A publication that was decided and not brought to its end.
    struct Unsettled {
        var intent: PublicationIntent
        var validated: @Sendable (FinalResponse, PublishedFile.Attributes) -> FinalResponse
        /// The file could not be made durable: it is not to be tried again.
        var hasFailed = false
    }

    struct State {
        /// As the catalog has it, but for what the fields below hold in a newer form. Nil before it was read.
        var row: CatalogRow?
        var activity = Activity.idle
        var epoch: Int64 = 0
        var revocation: (@Sendable () -> Void)?
        var blob: (any Blob)?
        /// End of what counts: in place, contiguous from 0, not staged.
        var received: Int64 = 0
        /// End of what is in place: beyond `received` while staging.
        var written: Int64 = 0
        var isStaging = false
        /// What may be told to the outside.
        var durable: Int64 = 0
        var length: Int64?
        var lengthIsRecorded = true
        var markedDurably = false
        var unsettled: Unsettled?
        /// Bytes without an upload: whether there is a row all the same, as their publication replaces a file.
        var isRecorded = false
        var acknowledgment = Acknowledgment.idle
        /// What the ledger counts for this upload.
        var reserved: Int64 = 0
        var digests = DigestTracker([])
        var stagedDigests: DigestTracker?
        /// Up to where bytes may come before the free space is looked at again.
        var spaceCheckedUpTo: Int64 = 0
        var writeBackStarted: Int64 = 0
        var writeBackAwaited: Int64 = 0

        var phase: UploadRecord.Phase { row?.phase ?? .receiving }
        /// Whether the row, or the bytes, have to be read before anything else.
        var needsLoading: Bool {
            guard let row else { return true }
            return row.isUnfinished && blob == nil && !needsSettling
        }

        /// Whether something has begun that the next one has to bring to its end. Valid while `activity` is idle.
        var needsSettling: Bool { unsettled != nil || markedDurably || phase == .processing }

        var principal: String { row?.upload.principal ?? "" }

        /// Why the holder of this epoch may no longer write; nil if it may.
        func refusal(_ epoch: Int64) -> StoreError? {
            switch phase {
            case .complete where self.epoch == epoch: .completed
            case .invalid(let reason) where self.epoch == epoch: .gone(reason: reason)
            default: self.epoch == epoch && unsettled == nil ? nil : .superseded
            }
        }

        /// Ends the right of whoever holds the present epoch; returns the closure to call without the lock.
        mutating func revoke() -> (@Sendable () -> Void)? {
            epoch += 1
            defer { revocation = nil }
            return revocation
        }
    }

    init(_ id: UploadID, store: UploadStore, isTransient: Bool = false) {
        self.id = id
        self.store = store
        self.isTransient = isTransient
        monitor = Monitor(State())
    }

    /// Whether nothing is under way that changes the row.
    var isIdle: Bool { monitor.withLock { $0.activity == .idle && $0.acknowledgment != .running } }

    /// Changes the state, publishes the mirrors and wakes those who wait.
    func change<Result>(_ body: (inout State) throws(StoreError) -> Result) throws(StoreError) -> Result {
        defer { monitor.notifyAll() }
        return try monitor.withLock { (state) throws(StoreError) in
            defer { mirror(state) }
            return try body(&state)
        }
    }

    /// As ``change(_:)``, for what cannot fail.
    func update<Result>(_ body: (inout State) -> Result) -> Result {
        defer { monitor.notifyAll() }
        return monitor.withLock { state in
            defer { mirror(state) }
            return body(&state)
        }
    }

    func mirror(_ state: State) {
        epochMirror.store(state.epoch, ordering: .releasing)
        receivedMirror.store(state.received, ordering: .releasing)
        durableMirror.store(state.durable, ordering: .releasing)
    }

    /// What can be told of the upload; nil before it was loaded or after it was removed.
    func record(_ state: State) -> UploadRecord? {
        guard var record = state.row?.record else { return nil }
        record.offset = state.durable
        record.length = state.length
        if record.phase == .receiving && (state.activity == .processing || state.needsSettling) {
            record.phase = .processing
        }
        return record
    }

    /// Waits until nobody else decides and no acknowledgment runs, and takes the upload for oneself.
    ///
    /// An `epoch` restricts it to the lease of that epoch, which may already be at work in `processing`.
    func enter(_ activity: Activity, as epoch: Int64? = nil) throws(StoreError) {
        let outcome = monitor.waitForever { state -> Result<Void, StoreError>? in
            if let epoch, let refusal = state.refusal(epoch) { return .failure(refusal) }
            guard state.activity == .idle || (epoch != nil && state.activity == .processing) else { return nil }
            if state.acknowledgment == .running { return nil }
            state.acknowledgment = .idle
            state.activity = activity
            return .success(())
        }
        try outcome.get()
    }
}
