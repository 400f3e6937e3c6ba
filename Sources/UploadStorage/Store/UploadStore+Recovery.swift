import SystemCalls

extension UploadStore {
    /// Brings catalogue and bytes into agreement after whatever ended the last process.
    func recover(_ rows: [CatalogueRow]) throws(StoreError) {
        let sizes = try translating("list bytes") { () throws(Errno) in try area.sizes() }
        for row in rows {
            // Loading is what finds lost bytes, settling what ends begun work. An upload that merely waits is loaded
            // when somebody asks for it.
            let isWhole = row.offset == 0 || (sizes[row.blob] ?? 0) >= row.offset
            if row.phase == .receiving && isWhole { continue }
            let upload = try registry.retain(row.id) { OpenUpload(row.id, store: self) }
            defer { registry.drop(upload) }
            do throws(StoreError) {
                _ = try upload.claim(principal: nil, until: deadline(in: .seconds(60))) { _ in () }
            } catch {
                // One upload that cannot be brought to its end is no reason to serve nobody: the sweep goes on trying.
                if let intent = row.intent { pathLocks.setUnsettled(intent.name, row.id) }
            }
        }
        let needed = Set(rows.map(\.blob))
        for name in sizes.keys where !needed.contains(name) { discard(name) }
    }
}
