import ObjectStorage
import PostgreSQL
import UploadStorage

extension StoreCopy.Place {
    /// Opens the database and the object storage of a cluster.
    ///
    /// - Parameters:
    ///   - isExclusive: whether this process uses them alone: it fails while a server uses them, and no server can start
    ///     before the place is closed.
    ///   - report: is called with the errors of the database and of the object storage when they occur for the first time,
    ///     and must not block. The errors of a copy name the operation that has failed, but not always the cause.
    /// - Throws: ``StoreError/inUse`` if another process uses them exclusively, or if `isExclusive` is true and any other
    ///   process uses them; ``StoreError/unavailable(_:)`` if the database cannot be reached.
    package static func cluster(
        _ location: ClusterLocation, credentials: ObjectCredentials, isExclusive: Bool,
        report: @escaping @Sendable (ClusterObservation.Note) -> Void = { _ in }
    ) throws(StoreError) -> StoreCopy.Place {
        let observation = ClusterObservation()
        observation.onNote(report)
        let parts = try ClusterParts(
            location, credentials: credentials, configuration: StoreConfiguration(), observation: observation,
            canDeliverEvents: false, isExclusive: isExclusive, hasLongTimeouts: true)
        var place = StoreCopy.Place(
            catalog: parts.catalog, area: parts.area, time: parts.node.clock.wall / 1_000_000_000)
        if isExclusive { place.requireUnchanged = parts.node.requireExclusion }
        do throws(StoreError) {
            // Without a session nothing can be copied.
            _ = try parts.node.currentSession()
        } catch {
            place.close(isChanged: false)
            throw .unavailable(
                "no session could be opened in the database; check that the database can be reached with these"
                    + " credentials, and run the command again")
        }
        return place
    }
}
