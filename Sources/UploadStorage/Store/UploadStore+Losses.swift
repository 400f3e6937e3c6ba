/// Uploads whose acknowledged bytes are missing, and who is told of them.
struct Losses {
    /// Those that were found before there was somebody to tell, as recovery does.
    var untold: [UploadID] = []
    var tell: (@Sendable (UploadID) -> Void)?
}

extension UploadStore {
    /// Tells `tell` of each upload that became invalid because acknowledged bytes were missing, those included that were
    /// found when the store was opened. It runs on the thread that finds the loss, and must not block.
    package func tellLosses(to tell: @escaping @Sendable (UploadID) -> Void) {
        let untold = losses.withLock { losses in
            defer { losses = Losses(tell: tell) }
            return losses.untold
        }
        for upload in untold { tell(upload) }
    }

    func tellLoss(of upload: UploadID) {
        let tell = losses.withLock { losses in
            if losses.tell == nil { losses.untold.append(upload) }
            return losses.tell
        }
        tell?(upload)
    }
}
