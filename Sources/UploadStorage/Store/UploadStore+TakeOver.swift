import SystemCalls

extension UploadStore {
    /// Takes over an upload. On return the previous lease has ended, and bytes that were written with it count as
    /// received.
    ///
    /// Requests for the same upload are served in the order in which they came.
    ///
    /// - Parameters:
    ///   - wait: the time to wait for a target resource that processes the upload. The processing is never interrupted.
    ///   - exclusive: whether later requests wait for the end of this lease, or for the call of
    ///     ``UploadLease/onRevocation(_:)``, instead of taking the upload over. Such a lease must end without waiting
    ///     for a client.
    package func takeOver(
        _ id: UploadID, principal: String, waitForProcessing wait: Duration, exclusive: Bool = false
    ) throws(StoreError) -> TakeOver {
        enum Taken {
            case lease(epoch: Int64, UploadRecord, revocation: (@Sendable () -> Void)?)
            case complete(UploadRecord)
        }
        let use = try registry.use(id)
        let upload = use.upload
        let expiryTime = expiryTime
        let taken = try upload.claim(principal: principal, until: SystemClock.deadline(in: wait)) {
            (state) throws(StoreError) -> Taken in
            guard let record = upload.record(state) else { throw .notFound }
            if let expiresAt = record.expiresAt, let expiryTime, expiresAt <= expiryTime {
                throw .gone(reason: "it has expired")
            }
            switch record.phase {
            case .complete: return .complete(record)
            case .invalid(let reason): throw .gone(reason: reason)
            case .receiving, .processing:
                let (mustTruncate, revocation) = state.revoking { $0.takeOver(exclusive: exclusive) }
                if mustTruncate { state.truncateStaged() }
                return .lease(epoch: state.machine.epoch, record, revocation: revocation)
            }
        }
        switch taken {
        case .lease(let epoch, let record, let revocation):
            revocation?()
            return .lease(UploadLease(use, epoch: epoch, record: record))
        case .complete(let record): return .complete(record)
        case nil:
            let record = try self.record(id)
            if case .complete = record.phase { return .complete(record) }
            return .processing(record)
        }
    }

    /// Removes an upload: first ends the lease, then removes the row, then the bytes. A published file is not removed.
    ///
    /// Fails with ``StoreError/processing`` if a target still processes the upload after
    /// ``StoreConfiguration/processingWait``.
    package func cancel(_ id: UploadID, principal: String) throws(StoreError) {
        let deadline = SystemClock.deadline(in: configuration.processingWait)
        let removed = try registry.withUpload(id) { (upload) throws(StoreError) in
            try upload.remove(principal: principal, until: deadline)
        }
        if removed == nil { throw .processing }
    }
}

/// The result of a take-over.
package enum TakeOver: Sendable {
    /// A lease with which bytes can be appended at `received`.
    case lease(UploadLease)
    /// The target resource still processes the upload after the waiting time. The processing was not interrupted.
    case processing(UploadRecord)
    /// The upload has its final response.
    case complete(UploadRecord)
}
