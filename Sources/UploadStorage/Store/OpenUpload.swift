import HTTPSemantics
import ResumableUpload
import Synchronization
import SystemCalls

/// One upload in use: its ``UploadMachine``, protected by a lock, and the row, bytes and digests that the machine
/// controls.
///
/// While the lock is held, a thread waits only for writes and truncations of local files. It waits for memory, and
/// synchronizes, changes the catalog and calls revocations, without the lock. The ledger and the trackers have inner locks.
final class OpenUpload: Sendable {
    let id: UploadID
    /// Whether it is a plain upload: bytes that have a row only while they replace a file.
    let isTransient: Bool
    let context: StoreContext
    let monitor = Monitor(State())

    // Copies for readers without the lock; written with the lock held.
    let epochMirror = Atomic<Int64>(0)
    let receivedMirror = Atomic<Int64>(0)
    let durableMirror = Atomic<Int64>(0)

    /// A publication that was decided and is not complete.
    struct DecidedPublication {
        var intent: PublicationIntent
        var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    }

    struct State {
        var machine = UploadMachine()
        /// The row as it was read. Later changes are in `machine`.
        var row: CatalogRow?
        /// The fence of the hold with which the row was read or created.
        var fence: Int64 = 1
        var blob: (any Blob)?
        var publication: DecidedPublication?
        /// The closure to call when the current lease is revoked.
        var revocation: (@Sendable () -> Void)?
        /// The lease whose thread waits in a call, or has got an error from one. If its bytes cannot be synchronized, it
        /// gets ``failure``, and needs no revocation.
        var waitingLease: Int64?
        /// The error with which a synchronization on another thread has ended a lease: see ``UploadLease/failure``.
        var failure: (lease: Int64, error: StoreError)?
        /// The release that another store has asked for.
        var handOver: HandOver?
        var digests = DigestTracker.none
        var stagedDigests: DigestTracker?
        var pace = WritePace()
        /// Whether a commit that failed may have created the row.
        var mayHaveRow = false
        /// Whether bytes may have been removed from the end of the file since its last synchronization, so that they may
        /// still be on the disk. For a file that was opened again this is unknown.
        var mayHaveRemovedBytes = false

        var principal: String { row?.upload.principal ?? "" }

        /// The error of a call of a lease.
        /// - Parameter refusal: the reason why the machine has refused the call.
        func error(of lease: Int64, _ refusal: StoreError) -> StoreError {
            guard refusal == .superseded, let failure, failure.lease == lease else { return refusal }
            return failure.error
        }

        /// Ends the current lease after `event`.
        /// - Returns: the closure to call without the lock.
        mutating func revoking<Result>(_ event: (inout UploadMachine) -> Result) -> (Result, (@Sendable () -> Void)?) {
            defer { revocation = nil }
            return (event(&machine), revocation)
        }

        /// Truncates the file after staged bytes were dropped. If that fails, these bytes are overwritten later, or
        /// removed before the publication.
        mutating func truncateStaged() {
            stagedDigests = nil
            pace.limit(to: machine.written)
            mayHaveRemovedBytes = true
            _ = try? blob?.truncate(to: machine.received)
        }
    }

    init(_ id: UploadID, _ context: StoreContext, isTransient: Bool = false) {
        self.id = id
        self.context = context
        self.isTransient = isTransient
    }

    /// Whether nothing is in progress that changes the row.
    var isIdle: Bool { monitor.withLock { $0.machine.isIdle } }

    /// Changes the state, copies it for readers without the lock, and wakes the waiting threads.
    func change<Result>(_ body: (inout State) throws(StoreError) -> Result) throws(StoreError) -> Result {
        defer { monitor.notifyAll() }
        return try monitor.withLock { (state) throws(StoreError) in
            defer { mirror(state.machine) }
            return try body(&state)
        }
    }

    /// Does the same as ``change(_:)`` for a `body` that cannot throw.
    func update<Result>(_ body: (inout State) -> Result) -> Result {
        defer { monitor.notifyAll() }
        return monitor.withLock { state in
            defer { mirror(state.machine) }
            return body(&state)
        }
    }

    func mirror(_ machine: UploadMachine) {
        epochMirror.store(machine.epoch, ordering: .releasing)
        receivedMirror.store(machine.received, ordering: .releasing)
        durableMirror.store(machine.durable, ordering: .releasing)
    }

    /// The upload as clients see it; nil before it was loaded or after it was removed.
    var record: UploadRecord? { monitor.withLock { record($0) } }

    func record(_ state: State) -> UploadRecord? {
        guard state.machine.isLoaded, var record = state.row?.record else { return nil }
        record.offset = state.machine.durable
        record.length = state.machine.length
        record.phase = state.machine.visiblePhase
        return record
    }
}
