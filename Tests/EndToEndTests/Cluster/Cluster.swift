import ConformanceKit
import SystemCalls
import TestSupport
import Testing

/// Several servers with one PostgreSQL database and one object storage, all on this machine.
final class Cluster {
    let database: PostgreSQLCluster
    let storage: SeaweedFS
    let nodes: [ServerProcess]

    /// The ports of the database and of the storage that a server uses.
    struct Ports {
        var database: UInt16
        var storage: UInt16
    }

    static let isPossible = PostgreSQLCluster.isInstalled && SeaweedFS.isInstalled
    static let requirement: String = "needs PostgreSQL and SeaweedFS, which `make test` installs"

    /// Starts the servers, and waits until all are ready.
    /// - Parameters:
    ///   - count: the number of servers.
    ///   - options: the options of each server.
    ///   - route: changes the ports that a server uses, for example to those of a proxy. It is called for each server.
    init(_ count: Int, _ options: [String], through route: (Ports) throws -> Ports) throws {
        database = try PostgreSQLCluster(isDurable: true)
        storage = try SeaweedFS.shared()
        let bucket = try storage.newBucket()
        guard let colon = storage.endpoint.lastIndex(of: ":"),
            let storagePort = UInt16(storage.endpoint[storage.endpoint.index(after: colon)...])
        else { throw TestFailure(storage.endpoint) }
        var nodes: [ServerProcess] = []
        for _ in 0..<count {
            let ports = try route(Ports(database: database.port, storage: storagePort))
            let endpoint = "http://127.0.0.1:\(ports.storage)"
            nodes.append(
                try ServerProcess(
                    options, environment: storage.environment,
                    storage: [
                        "--catalog", "postgresql://postgres@127.0.0.1:\(ports.database)/postgres", "--blobs",
                        bucket.replacing(storage.endpoint, with: endpoint),
                    ]))
        }
        self.nodes = nodes
        for node in nodes { try node.awaitReadiness() }
    }
}

extension Cluster {
    var catalog: [String] { Array(nodes[0].storage.prefix(2)) }
    /// The URI of the bucket.
    var bucket: String { nodes[0].storage[3] }

    /// Runs `onward` with these arguments, and the options of the storage.
    func run(_ arguments: [String]) throws -> OnwardRun {
        try OnwardRun(arguments + nodes[0].storage, environment: storage.environment)
    }

    /// The keys of the objects of a file in their order.
    func objects(of file: String) throws -> [String] {
        try database.query(
            """
            SELECT p.object FROM onward.piece p JOIN onward.name n ON n.blob = p.blob
            WHERE n.name = '\(file)' AND p.object IS NOT NULL ORDER BY p.start
            """)
    }
}

extension ServerProcess {
    /// Waits until the server accepts uploads.
    func awaitReadiness(within limit: Duration = .seconds(60)) throws {
        let isReady: Bool? = pollUntil(within: limit) { (try? exchange(.get("/readyz")))?.status == 200 ? true : nil }
        guard isReady == true else { throw TestFailure("the server is not ready:\n\(log.suffix(2000))") }
    }
}

/// Runs `body` with a cluster. A server that ended by itself with an error is recorded as an issue.
func withCluster(
    _ count: Int = 2, _ options: [String] = [], through route: (Cluster.Ports) throws -> Cluster.Ports = { $0 },
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (Cluster) throws -> Void
) throws {
    let cluster = try Cluster(count, options, through: route)
    do { try body(cluster) } catch {
        let logs = cluster.nodes.enumerated().map { "Server \($0) wrote:\n\($1.log.suffix(3000))" }
        Issue.record(error, "\(logs.joined(separator: "\n"))", sourceLocation: sourceLocation)
    }
    for node in cluster.nodes {
        if case let ending? = node.process.ending, ending != .exited(0), ending != .signaled(9) {
            Issue.record("A server ended: \(ending):\n\(node.log.suffix(3000))", sourceLocation: sourceLocation)
        }
    }
}
