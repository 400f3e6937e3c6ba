/// Damage of the catalog that was found while the store is in use.
struct CatalogDamage {
    var error: StoreError?
    var report: (@Sendable (StoreError) -> Void)?
}

extension UploadStore {
    /// Calls `report` once, when the catalog is found to be damaged; immediately if damage was found before. From then
    /// on the store is not ready and changes nothing; published files can still be read.
    package func onDamage(_ report: @escaping @Sendable (StoreError) -> Void) {
        let error = damage.withLock { damage in
            damage.report = report
            return damage.error
        }
        if let error { report(error) }
    }

    func reportDamage(_ error: StoreError) {
        let report = damage.withLock { damage -> (@Sendable (StoreError) -> Void)? in
            if damage.error != nil { return nil }
            damage.error = error
            return damage.report
        }
        report?(error)
    }

    /// Reports the damage that a request found, if there is any.
    func reportCatalogDamage() { if let error = catalog.damage { reportDamage(error) } }
}

/// The uploads whose acknowledged bytes are missing, and the closure that is called for them.
struct Losses {
    /// The uploads that were found before ``UploadStore/onLoss(_:)`` was called, for example by recovery.
    var unreported: [UploadID] = []
    var report: (@Sendable (UploadID) -> Void)?
}

extension UploadStore {
    /// Calls `report` with each upload that became invalid because acknowledged bytes were missing, including uploads
    /// for which this was found when the store was opened. `report` runs on the thread that finds the loss, and must
    /// not block.
    package func onLoss(_ report: @escaping @Sendable (UploadID) -> Void) {
        let unreported = context.losses.withLock { losses in
            defer { losses = Losses(report: report) }
            return losses.unreported
        }
        for upload in unreported { report(upload) }
    }
}
