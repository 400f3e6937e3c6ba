import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// The database and the object storage of a cluster, for a process that is not one of its servers. It has no session, so it
/// changes no upload. It works through PgBouncer in transaction mode.
package struct ClusterInspection: Sendable {
    let database: Database
    let objects: any ObjectStore

    /// - Throws: ``StoreError/unavailable(_:)``, ``StoreError/newerSchema(_:)``, or ``StoreError/unusableRoot(_:)`` if no
    ///   server of this version has used the database.
    package init(_ location: ClusterLocation, credentials: ObjectCredentials) throws(StoreError) {
        // No client waits for this process, and some statements read entire tables.
        try self.init(
            Database(location.catalog, connections: 2, timeout: .seconds(600)),
            S3Client(location.blobs, credentials, limits: .withLongTimeouts))
    }

    init(_ database: Database, _ objects: any ObjectStore) throws(StoreError) {
        (self.database, self.objects) = (database, objects)
        try database.requireClusterSchema()
    }

    /// Returns a storage that only reads objects. The caller closes it.
    func pieceStorage() throws(StoreError) -> PieceStorage {
        do throws(Errno) {
            return try PieceStorage(
                objects: objects, database: database, ledger: PieceLedger(), limits: PieceLimits(), writers: 1,
                session: { () throws(StoreError) -> Int64 in throw .invalidState("this process stores no objects") })
        } catch { throw .cannotStartThread(error) }
    }

    func rows(_ sql: String, _ parameters: [DatabaseValue] = []) throws(StoreError) -> DatabaseRows {
        try transaction([DatabaseStatement(sql, parameters)])[0]
    }

    func transaction(_ statements: [DatabaseStatement]) throws(StoreError) -> [DatabaseRows] {
        do throws(DatabaseError) { return try database.transaction(statements) } catch { throw StoreError(error) }
    }
}

extension Database {
    /// Requires that a server of this version has used the database, and that this version can work with it.
    func requireClusterSchema() throws(StoreError) {
        let (number, oldest): (Int, Int)
        do throws(DatabaseError) { (number, oldest) = try clusterVersion() } catch { throw StoreError(error) }
        guard number > 0 else { throw .unusableRoot("no server has used this database") }
        guard oldest <= ClusterSQL.migrations.count else { throw .newerSchema(number) }
        guard number >= ClusterSQL.migrations.count else {
            throw .unusableRoot(
                "an older version of onward wrote this database; start a server of this version to update it")
        }
    }
}

extension StoreError {
    /// The error of the store for an error of the object storage.
    init(_ error: ObjectError, during operation: String) {
        switch error {
        case .unavailable: self = .unavailable("cannot \(operation): \(error)")
        // The request could not be signed. "Permission denied" would contradict the reason that the credentials are missing.
        case .refused(0, _, _): self = .io(.missingKey, during: "\(operation): \(error)")
        case .notFound, .refused: self = .io(Errno(error), during: "\(operation): \(error)")
        }
    }
}
