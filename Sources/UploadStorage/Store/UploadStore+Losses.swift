/// Uploads whose acknowledged bytes are missing, and who is notified of them.
struct Losses {
    /// Those that were found before ``UploadStore/onLoss(_:)``, as by recovery.
    var unreported: [UploadID] = []
    var report: (@Sendable (UploadID) -> Void)?
}

extension UploadStore {
    /// Calls `report` with each upload that became invalid because acknowledged bytes were missing, those included that were
    /// found when the store was opened. It runs on the thread that finds the loss, and must not block.
    package func onLoss(_ report: @escaping @Sendable (UploadID) -> Void) {
        let unreported = context.losses.withLock { losses in
            defer { losses = Losses(report: report) }
            return losses.unreported
        }
        for upload in unreported { report(upload) }
    }
}
