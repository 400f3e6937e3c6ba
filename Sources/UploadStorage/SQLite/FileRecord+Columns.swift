import HTTPSemantics

extension FileRecord {
    /// From the columns of ``CatalogSQL/selectFile``.
    init(columns: [SQLiteValue]) {
        self.init(
            name: columns[0].text ?? "", principal: columns[1].text ?? "", size: columns[2].integer ?? 0,
            identity: columns[3].text ?? "", modifiedSeconds: columns[4].integer ?? 0,
            fields: columns[5].blob.flatMap { try? Fields(savedBytes: $0) } ?? [:])
    }
}
