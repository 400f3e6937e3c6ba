extension SQLiteConnection {
    /// Refuses a database that is not ours, or newer than we are.
    ///
    /// - Returns: how many steps of the schema it has taken.
    func requireOwn() throws -> Int {
        let application = try rows(CatalogSQL.readApplicationID).first?[0].integer ?? 0
        let tables = try rows(CatalogSQL.countTables).first?[0].integer ?? 0
        let version = try rows(CatalogSQL.readUserVersion).first?[0].integer ?? 0
        guard application == CatalogSQL.applicationID || (application == 0 && tables == 0 && version == 0) else {
            throw StoreError.foreignData("the catalog's file is the database of another application")
        }
        if version > Int64(CatalogSQL.migrations.count) { throw StoreError.newerSchema(Int(version)) }
        return Int(max(0, version))
    }
}
