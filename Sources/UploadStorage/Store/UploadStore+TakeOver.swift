import SystemCalls

extension UploadStore {
    /// Takes an upload over: whoever wrote to it has lost the right when this returns, and what had been written counts.
    ///
    /// - Parameter wait: how long to wait for a target at work, which is never disturbed.
    package func takeOver(
        _ id: UploadID, principal: String, waitForProcessing wait: Duration
    ) throws(StoreError) -> TakeOver {
        enum Taken {
            case lease(epoch: Int64, UploadRecord, revoked: (@Sendable () -> Void)?)
            case complete(UploadRecord)
        }
        let upload = try registry.retain(id) { OpenUpload(id, store: self) }
        var isHandedOver = false
        defer { if !isHandedOver { registry.drop(upload) } }
        let expiryTime = expiryTime
        let taken = try upload.claim(principal: principal, until: deadline(in: wait)) {
            (state) throws(StoreError) -> Taken in
            guard let record = upload.record(state) else { throw .notFound }
            if let expiresAt = record.expiresAt, let expiryTime, expiresAt <= expiryTime {
                throw .gone(reason: "it has expired")
            }
            switch record.phase {
            case .complete: return .complete(record)
            case .invalid(let reason): throw .gone(reason: reason)
            case .receiving, .processing:
                state.dropStaged()
                let revoked = state.revoke()
                return .lease(epoch: state.epoch, record, revoked: revoked)
            }
        }
        switch taken {
        case .lease(let epoch, let record, let revoked):
            isHandedOver = true
            revoked?()
            return .lease(UploadLease(upload, epoch: epoch, record: record))
        case .complete(let record): return .complete(record)
        case nil:
            let record = try self.record(id)
            if case .complete = record.phase { return .complete(record) }
            return .processing(record)
        }
    }

    /// Forgets an upload: its writer loses the right, then the row goes, then the bytes. A published file stays.
    ///
    /// Fails with ``StoreError/processing`` if a target is at work beyond ``StoreConfiguration/processingWait``.
    package func cancel(_ id: UploadID, principal: String) throws(StoreError) {
        let upload = try registry.retain(id) { OpenUpload(id, store: self) }
        defer { registry.drop(upload) }
        let deadline = deadline(in: configuration.processingWait)
        if try upload.remove(principal: principal, until: deadline) == nil { throw .processing }
    }

    func deadline(in wait: Duration) -> Int64 {
        SystemClock.monotonicNanoseconds() + Int64(max(0, min(wait / .nanoseconds(1), 1e17)))
    }
}
