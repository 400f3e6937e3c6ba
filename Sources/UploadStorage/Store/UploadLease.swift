import HTTPSemantics
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
    package var received: Int64 { upload.receivedMirror.load(ordering: .acquiring) }

    /// The number of durable bytes: the offset that may be reported to the client.
    package var acknowledged: Int64 { upload.durableMirror.load(ordering: .acquiring) }

    /// The offset that an error response may report; nil if the upload has no row, so that a crash could still remove
    /// it.
    package var reportableOffset: Int64? { upload.hasDurableRow ? acknowledged : nil }

    /// Whether the lease is valid: the upload has not been taken over.
    package var isCurrent: Bool { upload.epochMirror.load(ordering: .acquiring) == epoch }

    /// Whether ``failure`` can be set while no method of the lease is called.
    package var canFail: Bool { context.catalog.isShared }

    /// The error with which the storage has ended the lease; nil if it has not.
    package var failure: StoreError? {
        if isCurrent { return nil }
        return upload.monitor.withLock { state in
            state.failure.flatMap { $0.lease == epoch ? $0.error : nil }
        }
    }

    /// Sets a closure that is called once when the upload is taken over, on the thread of the other request. If the
    /// upload has been taken over already, the closure is called immediately. The closure must not wait for the thread
    /// of this lease. From now on, other requests do not wait for the end of an exclusive lease.
    package func onRevocation(_ closure: @escaping @Sendable () -> Void) {
        let isCurrent = upload.update { state in
            guard state.machine.allowTakeOver(of: epoch) else { return false }
            state.revocation = closure
            return true
        }
        if !isCurrent { closure() }
    }

    // MARK: Acknowledgment

    /// Starts to make all received bytes durable on another thread. Does nothing if such an acknowledgment is in
    /// progress.
    package func startAcknowledging() {
        let queued = upload.monitor.withLock { state -> Int64? in
            guard !upload.isTransient, state.machine.queueAcknowledgment(as: epoch) else { return nil }
            return state.machine.received - state.machine.durable
        }
        guard let queued else { return }
        // A shared storage can stall for one upload, so no other upload waits for it. Its catalog combines changes itself.
        let waits = !context.catalog.isShared && queued < GatheredAcknowledgments.maxSize
        upload.enqueueAcknowledgment(use.withLock { $0 }, waits: waits)
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
        let step = upload.update { state in
            // The holder of the lease needs no notification.
            if state.machine.isCurrent(epoch) { state.revocation = nil }
            if state.machine.discardStaged(as: epoch) { state.truncateStaged() }
            return state.machine.beginRelease(of: epoch)
        }
        switch step {
        case .superseded: return
        case .completeAsInterrupted: _ = try? completeAsInterrupted()
        case .acknowledge: break
        }
        if !upload.isTransient { _ = try? acknowledge() }
        upload.update { $0.machine.endRelease(of: epoch) }
    }
}
