import ObjectStorage
import PostgreSQL
import UploadStorage

extension StoreCopy.Place {
    /// Opens the database and the object storage of a cluster.
    ///
    /// - Parameter isExclusive: whether no server may be using them.
    package static func cluster(
        _ location: ClusterLocation, credentials: ObjectCredentials, isExclusive: Bool
    ) throws(StoreError) -> StoreCopy.Place {
        let parts = try ClusterParts(
            location, credentials: credentials, configuration: StoreConfiguration(), deliversEvents: false)
        let place = StoreCopy.Place(
            catalog: parts.catalog, area: parts.area, time: parts.node.clock.wall / 1_000_000_000)
        do throws(StoreError) {
            // Without a session nothing can be copied.
            _ = try parts.node.currentSession()
            if isExclusive, try parts.node.hasOtherSessions() { throw .inUse }
        } catch {
            place.close(isChanged: false)
            throw error
        }
        return place
    }
}
