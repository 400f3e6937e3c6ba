extension UploadCatalogue {
    /// Commits a change of one upload. A commit that failed may have been made all the same: then the row shows it.
    ///
    /// - Returns: the uploads that the change removed; nil if only the row shows that it was made.
    @discardableResult
    func commit(
        _ change: CatalogueChange, of id: UploadID, knownBy isMade: (CatalogueRow?) -> Bool
    ) throws(StoreError) -> RemovedUploads? {
        do throws(StoreError) {
            return try commit(change)
        } catch {
            let row: CatalogueRow?
            do throws(StoreError) { row = try self.row(id) } catch { throw error }
            guard isMade(row) else { throw error }
            return nil
        }
    }
}
