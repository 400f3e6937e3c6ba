import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// The database and the object storage that several servers share.
package struct ClusterLocation: Sendable, CustomStringConvertible {
    package var catalog: DatabaseURI
    /// The same database, reached without a connection pooler such as PgBouncer, which does not pass notifications on.
    package var notifications: DatabaseURI
    package var blobs: ObjectStorageURI

    package init(catalog: DatabaseURI, notifications: DatabaseURI, blobs: ObjectStorageURI) {
        (self.catalog, self.notifications, self.blobs) = (catalog, notifications, blobs)
    }

    package var description: String { "\(catalog) and \(blobs)" }
}

/// The catalog and the blob area of a cluster, which a node of this process uses.
struct ClusterParts {
    let node: ClusterNode
    let catalog: ClusterCatalog
    let area: ObjectBlobArea

    let observation: ClusterObservation
    private let client: S3Client

    /// - Parameter hasLongTimeouts: whether no client waits, so that slow requests to the object storage may take minutes.
    init(
        _ location: ClusterLocation, credentials: ObjectCredentials, configuration: StoreConfiguration,
        observation: ClusterObservation = ClusterObservation(), canDeliverEvents: Bool = true,
        isExclusive: Bool = false,
        hasLongTimeouts: Bool = false
    ) throws(StoreError) {
        self.observation = observation
        let database = Database(location.catalog, observe: observation.record)
        let control = Database(
            location.notifications, connections: 2, timeout: .seconds(4), observe: observation.record)
        let node = try ClusterNode(
            database: database, control: control, name: SystemName.current, canDeliverEvents: canDeliverEvents,
            isExclusive: isExclusive, report: observation.report)
        // The clocks of the nodes can differ, and a URL that one of them signs is valid for a minute.
        let limits = hasLongTimeouts ? S3Client.Limits.withLongTimeouts : S3Client.Limits()
        client = S3Client(
            location.blobs, credentials, limits: limits, clock: { [node] in node.clock.wall / 1_000_000_000 })
        let objects = ObservedObjectStore(store: client, observation: observation)
        let ledger = PieceLedger()
        self.node = node
        catalog = ClusterCatalog(node: node, ledger: ledger, configuration: configuration)
        var pieces = PieceLimits()
        if hasLongTimeouts { (pieces.synchronizationTime, pieces.claimWait) = (.seconds(900), .seconds(300)) }
        area = try ObjectBlobArea(node: node, objects: objects, ledger: ledger, limits: pieces, writers: 8)
    }

    func statistics() -> SharedStorageStatistics {
        var statistics = observation.statistics
        statistics.repeatedRequests = client.repetitions
        node.add(to: &statistics)
        statistics.collection = area.collector.statistics(canReadDatabase: statistics.session.secondsLeft > 0)
        return statistics
    }
}

extension UploadStore {
    /// Opens a store whose rows are in PostgreSQL, and whose bytes are in an object storage. Any number of stores can use
    /// them at the same time.
    ///
    /// If the database cannot be reached, the store is opened nevertheless: it is not ready, and all its operations fail
    /// with `unavailable` until the database can be reached.
    ///
    /// - Parameter observation: counts the requests to the database and to the object storage, and reports their errors.
    package static func open(
        _ location: ClusterLocation, credentials: ObjectCredentials, configuration: StoreConfiguration,
        observation: ClusterObservation
    ) throws(StoreError) -> UploadStore {
        let parts = try ClusterParts(
            location, credentials: credentials, configuration: configuration, observation: observation)
        var configuration = configuration
        configuration.sharedStatistics = parts.statistics
        configuration.clock = { [node = parts.node] in node.clock }
        let store = try UploadStore(
            catalog: parts.catalog, area: parts.area, location: location.description, configuration: configuration)
        try parts.area.collector.start { [weak store] error in store?.report(error) }
        return store
    }
}
