extension UploadCatalog {
    /// Commits a change of one upload. A commit that failed may have been made all the same: then the row shows it.
    ///
    /// - Returns: the uploads that the change removed; nil if only the row shows that it was made.
    @discardableResult
    func commit(
        _ change: CatalogChange, of id: UploadID, knownBy isMade: (CatalogRow?) -> Bool
    ) throws(StoreError) -> RemovedUploads? {
        do throws(StoreError) {
            return try commit(change)
        } catch {
            let row: CatalogRow?
            do throws(StoreError) { row = try self.row(id) } catch { throw error }
            guard isMade(row) else { throw error }
            return nil
        }
    }
}
