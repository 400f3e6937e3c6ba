import ConformanceKit
import SystemCalls
import TestSupport
import Testing

/// Several servers with one PostgreSQL database and one object storage, all on this machine.
final class Cluster {
    /// Proxies between one server and the database and the storage.
    struct Link {
        let database: FaultProxy
        let storage: FaultProxy
    }

    /// The parts of a cluster that a test needs besides the servers.
    struct Features: Sendable, CustomTestStringConvertible {
        /// Whether each server has a ``Link``.
        var hasLinks = false
        /// Whether the database has a synchronous standby server.
        var hasStandby = false
        /// Whether the servers reach the database through PgBouncer in transaction mode, and only listen without it.
        var hasPooler = false
        /// The object storage instead of SeaweedFS.
        var engine: OtherEngine?
        /// The variables of each server, by its number.
        var environment: @Sendable (Int) -> [String: String] = { _ in [:] }

        var testDescription: String {
            (engine?.rawValue ?? "SeaweedFS") + ", " + (hasPooler ? "with PgBouncer" : "without PgBouncer")
        }
    }

    let database: PostgreSQLCluster
    let standby: PostgreSQLCluster?
    private let pooler: PgBouncer?
    let storage: SeaweedFS
    private let engine: any StorageEngine
    let nodes: [ServerProcess]
    private(set) var links: [Link] = []

    static let isPossible = PostgreSQLCluster.isInstalled && SeaweedFS.isInstalled
    static let requirement: String = "needs PostgreSQL and SeaweedFS, which `make test` installs"

    /// The features of tests that also run with PgBouncer, if it is installed.
    static let poolers = [Features()] + (PgBouncer.isInstalled ? [Features(hasPooler: true)] : [])

    /// Starts the servers, and waits until all are ready.
    /// - Parameters:
    ///   - count: the number of servers.
    ///   - options: the options of each server.
    init(_ count: Int, _ options: [String], _ features: Features) throws {
        database = try PostgreSQLCluster(isDurable: true)
        standby = features.hasStandby ? try PostgreSQLCluster(isDurable: true, copying: database) : nil
        // Each server has up to eight connections to the pooler, which has fewer to the database.
        pooler = features.hasPooler ? try PgBouncer(database, connections: 5) : nil
        storage = try SeaweedFS.shared()
        engine = try features.engine?.start() ?? storage
        let bucket = try engine.newBucket()
        var nodes: [ServerProcess] = []
        for number in 0..<count {
            var (host, endpoint) = ("127.0.0.1:\(database.port)", engine.endpoint)
            if features.hasLinks {
                let link = try Link(
                    database: FaultProxy(to: database.port), storage: FaultProxy(to: storage.port))
                links.append(link)
                (host, endpoint) = ("127.0.0.1:\(link.database.port)", link.storage.url)
            }
            var (parameters, direct): (String, [String]) = ("", [])
            if let pooler {
                direct = ["--catalog-direct", "postgresql://postgres@\(host)/postgres"]
                host = "127.0.0.1:\(pooler.port)"
            }
            if let standby {
                host += ",127.0.0.1:\(standby.port)"
                parameters = "?target_session_attrs=read-write"
            }
            nodes.append(
                try ServerProcess(
                    options, environment: engine.environment.merging(features.environment(number)) { $1 },
                    storage: [
                        "--catalog", "postgresql://postgres@\(host)/postgres\(parameters)", "--blobs",
                        bucket.replacing(engine.endpoint, with: endpoint),
                    ] + direct))
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
        try awaitReadiness(status: 200, within: limit)
    }

    /// Waits until `/readyz` responds with 503.
    func awaitUnreadiness() throws { try awaitReadiness(status: 503, within: .seconds(60)) }

    private func awaitReadiness(status: Int, within limit: Duration) throws {
        let isFound: Bool? = pollUntil(within: limit) {
            (try? exchange(.get("/readyz")))?.status == status ? true : nil
        }
        guard isFound == true else { throw TestFailure("/readyz is not \(status):\n\(log.suffix(2000))") }
    }
}

/// Runs `body` with a cluster. A server that ended by itself with an error is recorded as an issue.
func withCluster(
    _ count: Int = 2, _ options: [String] = [], _ features: Cluster.Features = Cluster.Features(),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (Cluster) throws -> Void
) throws {
    let cluster = try Cluster(count, options, features)
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
