import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// The database and the object storage that several servers share.
package struct ClusterLocation: Sendable, CustomStringConvertible {
    package var catalog: DatabaseURI
    /// The same database without a pooler between, for notifications.
    package var notifications: DatabaseURI
    package var blobs: ObjectStorageURI

    package init(catalog: DatabaseURI, notifications: DatabaseURI, blobs: ObjectStorageURI) {
        (self.catalog, self.notifications, self.blobs) = (catalog, notifications, blobs)
    }

    package var description: String { "\(catalog) and \(blobs)" }
}

extension UploadStore {
    /// Opens a store whose rows are in PostgreSQL, and whose bytes are in an object storage. Any number of stores can use
    /// them at the same time.
    ///
    /// If the database cannot be reached, the store is opened nevertheless: it is not ready, and all its operations fail
    /// with `unavailable` until the database can be reached.
    package static func open(
        _ location: ClusterLocation, credentials: ObjectCredentials, configuration: StoreConfiguration
    ) throws(StoreError) -> UploadStore {
        let database = Database(location.catalog)
        let control = Database(location.notifications, connections: 2, statementTimeout: .seconds(4))
        let node = try ClusterNode(database: database, control: control, name: SystemName.current)
        let ledger = PieceLedger()
        let catalog = ClusterCatalog(node: node, ledger: ledger, configuration: configuration)
        let area = try ObjectBlobArea(
            database: database, objects: S3Client(location.blobs, credentials), ledger: ledger
        ) { [weak node] in try? node?.currentSession() }
        var configuration = configuration
        configuration.clock = { node.clock }
        return try UploadStore(
            catalog: catalog, area: area, location: location.description, configuration: configuration)
    }
}
