import PostgreSQL
import UploadStorage

extension Database {
    /// Brings the schema of the cluster up to date. Several nodes can do this at the same time: each migration is made
    /// once. Throws ``StoreError/newerSchema(_:)`` if a newer version has made a change with which this version cannot
    /// work.
    package func updateClusterSchema() throws(StoreError) {
        let version: (number: Int, oldest: Int)
        do throws(DatabaseError) { version = try clusterVersion() } catch { throw StoreError(error) }
        guard version.oldest <= ClusterSQL.migrations.count else { throw .newerSchema(version.number) }
        do throws(DatabaseError) {
            let current = ClusterSQL.migrations.count
            for index in min(version.number, current)..<current {
                do throws(DatabaseError) {
                    try runScript(ClusterSQL.script(index + 1, ClusterSQL.migrations[index]))
                } catch {
                    if error.sqlState != ClusterSQL.CatalogError.isMigrated { throw error }
                }
            }
        } catch {
            throw StoreError(error)
        }
    }

    /// The version of the schema, and the oldest version whose nodes can use it; 0 if there is no schema.
    func clusterVersion() throws(DatabaseError) -> (number: Int, oldest: Int) {
        // A statement that fails would be logged as an error of the database.
        guard try run(DatabaseStatement(ClusterSQL.hasVersion)).boolean(0, 0) == true else { return (0, 0) }
        let rows = try run(DatabaseStatement(ClusterSQL.readVersion))
        return (Int(rows.integer(0, 0) ?? 0), Int(rows.integer(0, 1) ?? 0))
    }
}
