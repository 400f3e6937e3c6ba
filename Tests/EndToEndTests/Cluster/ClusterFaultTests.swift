import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite(
    "Clients of servers that fail", .blocking, .serialized, .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterFaultTests {
    /// With ONWARD_SCALE=1 there are many clients, and the faults last longer than a lease.
    private static let isLong = getenv("ONWARD_SCALE") != nil
    private static let longTest: Comment = "takes a minute: make test-scale runs it"
    private static let clients = isLong ? 100 : 6

    /// Runs clients of all nodes while `faults` runs, and then until each has completed its file.
    /// - Parameter proxy: the port of HAProxy; `nil` if each request is sent to one of the nodes.
    /// - Returns: the names of the completed files.
    @discardableResult
    private func withClients(
        of cluster: Cluster, through proxy: UInt16? = nil, seed: UInt64,
        _ faults: (inout SeededGenerator) throws -> Void
    ) throws -> Set<String> {
        let world = ClusterClient.World(
            ports: proxy.map { [$0] } ?? cluster.nodes.map(\.port), isBehindProxy: proxy != nil)
        let failure = Monitor<(any Error)?>(nil)
        let threads = try (0..<Self.clients).map { number in
            try WorkerThread(name: "client-\(number)") {
                var client = ClusterClient(
                    number, world: world, seed: seed, limit: .seconds(Self.isLong ? 900 : 300))
                do { try client.run() } catch { failure.withLock { $0 = $0 ?? error } }
            }
        }
        var random = SeededGenerator(seed: seed)
        let result = Result { try faults(&random) }
        world.end()
        for thread in threads { thread.join() }
        try result.get()
        if let error = failure.withLock({ $0 }) { throw error }
        for node in cluster.nodes { try node.awaitReadiness() }
        try world.inspect(cluster.nodes)
        print(world.summary)
        #expect(world.completed.count >= Self.clients)
        return Set(world.completed.keys)
    }

    @Test(
        "no acknowledged byte is lost while servers are killed and started again",
        arguments: OtherEngine.isRequired
            ? OtherEngine.used.map { Cluster.Features(engine: $0) } : isLong ? Cluster.poolers : [Cluster.Features()])
    func kills(_ features: Cluster.Features) throws {
        try withCluster(3, [], features) { cluster in
            try withClients(of: cluster, seed: 11) { random in
                for _ in 0..<(Self.isLong ? 12 : 3) {
                    let node = cluster.nodes.randomElement(using: &random) ?? cluster.nodes[0]
                    SystemClock.pause(nanoseconds: .random(in: 500_000_000...2_000_000_000, using: &random))
                    try node.crash()
                    SystemClock.pause(nanoseconds: .random(in: 0...2_000_000_000, using: &random))
                    try node.restart()
                }
            }
        }
    }

    @Test("no acknowledged byte is lost while servers are stopped, in part for longer than a lease")
    func stops() throws {
        try withCluster(3) { cluster in
            try withClients(of: cluster, seed: 12) { random in
                for round in 0..<(Self.isLong ? 6 : 1) {
                    let node = cluster.nodes.randomElement(using: &random) ?? cluster.nodes[0]
                    SystemClock.pause(nanoseconds: 1_000_000_000)
                    node.process.kill(SIGSTOP)
                    SystemClock.pause(nanoseconds: round.isMultiple(of: 2) ? 18_000_000_000 : 3_000_000_000)
                    node.process.kill(SIGCONT)
                }
            }
        }
    }

    @Test("no acknowledged byte is lost while the database is killed and started again")
    func databaseKills() throws {
        try withCluster(2) { cluster in
            try withClients(of: cluster, seed: 13) { random in
                for _ in 0..<(Self.isLong ? 8 : 2) {
                    SystemClock.pause(nanoseconds: .random(in: 500_000_000...2_000_000_000, using: &random))
                    cluster.database.kill()
                    SystemClock.pause(nanoseconds: .random(in: 0...1_000_000_000, using: &random))
                    try cluster.database.start()
                }
            }
        }
    }

    @Test(
        "no acknowledged byte is lost while servers cannot reach the database or the storage, or get no responses",
        .enabled(if: isLong, longTest))
    func networkFaults() throws {
        try withCluster(3, [], Cluster.Features(hasLinks: true)) { cluster in
            try withClients(of: cluster, seed: 14) { random in
                for round in 0..<(Self.isLong ? 20 : 4) {
                    let link = cluster.links.randomElement(using: &random) ?? cluster.links[0]
                    let networks: [FaultProxy.Network] = [
                        .stalled([.toServer, .toClient]), .cut, .losingResponses(oneIn: 7), .stalled([.toClient]),
                    ]
                    let network = networks[round % networks.count]
                    let proxies = [[link.database], [link.storage], [link.database, link.storage]]
                        .randomElement(using: &random)
                    for proxy in proxies ?? [] { proxy.set(network) }
                    let isBeyondLease = Self.isLong && random.oneIn(2)
                    SystemClock.pause(nanoseconds: isBeyondLease ? 18_000_000_000 : 2_000_000_000)
                    for proxy in proxies ?? [] { proxy.set(.open) }
                    SystemClock.pause(nanoseconds: .random(in: 0...2_000_000_000, using: &random))
                }
            }
        }
    }

    @Test(
        "no acknowledged byte is lost if the database is killed and a synchronous standby server replaces it, soon or after the sessions of all servers have ended",
        .enabled(if: isLong, longTest), arguments: [false, true])
    func failover(isBeyondLease: Bool) throws {
        try withCluster(3, [], Cluster.Features(hasStandby: true)) { cluster in
            let standby = try #require(cluster.standby)
            try withClients(of: cluster, seed: 15) { random in
                SystemClock.pause(nanoseconds: .random(in: 2_000_000_000...5_000_000_000, using: &random))
                cluster.database.kill()
                if isBeyondLease {
                    for node in cluster.nodes { try node.awaitUnreadiness() }
                    SystemClock.pause(nanoseconds: 25_000_000_000)
                } else {
                    SystemClock.pause(nanoseconds: .random(in: 0...2_000_000_000, using: &random))
                }
                try standby.promote()
                for node in cluster.nodes { try node.awaitReadiness() }
                if isBeyondLease {
                    for node in cluster.nodes { #expect(try node.metrics()["onward_sessions_lost_total"] == 1) }
                }
                SystemClock.pause(nanoseconds: 3_000_000_000)
            }
        }
    }

    @Test(
        "no acknowledged byte is lost at servers whose clocks differ by minutes while servers are killed",
        .enabled(if: isLong, longTest), .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
    func clocks() throws {
        let clocks = try [-400, 0, 400].map { difference in
            let clock = try ShiftedClock()
            try clock.shift(by: difference)
            return clock
        }
        defer { withExtendedLifetime(clocks) {} }
        let environments = clocks.map(\.environment)
        try withCluster(3, [], Cluster.Features(environment: { environments[$0] })) { cluster in
            let dates = try cluster.nodes.map { try $0.exchange(.get("/healthz")).fields["Date"] ?? "" }
            #expect(Set(dates).count == 3, "\(dates)")
            try withClients(of: cluster, seed: 16) { random in
                for _ in 0..<(Self.isLong ? 8 : 2) {
                    let node = cluster.nodes.randomElement(using: &random) ?? cluster.nodes[0]
                    SystemClock.pause(nanoseconds: .random(in: 500_000_000...2_000_000_000, using: &random))
                    try node.crash()
                    SystemClock.pause(nanoseconds: .random(in: 0...2_000_000_000, using: &random))
                    try node.restart()
                }
            }
        }
    }

    @Test(
        "a hundred clients of HAProxy lose no byte, and no file is published twice, while one server is killed repeatedly, one is stopped for longer than a lease, and one is partitioned",
        .enabled(if: isLong, longTest))
    func proxy() throws {
        // Nothing listens at this address, so all events wait in the database.
        let options = ["--allow-anonymous", "--events", "http://127.0.0.1:9/events"]
        try withCluster(3, options, Cluster.Features(hasLinks: true)) { cluster in
            let directory = try TemporaryDirectory()
            let port = try FixedPort.next()
            let haproxy = try ChildProcess(
                ReverseProxy.haproxy.executable,
                ["-db", "-f", try directory.file("haproxy.cfg", Array(configuration(of: cluster, at: port).utf8))])
            defer { haproxy.kill(SIGKILL) }
            #expect(
                eventually { (try? RawConnection(port: port).exchange(.get("/readyz")))?.status == 200 },
                "\(haproxy.errorOutput)")
            let completed = try withClients(of: cluster, through: port, seed: 17) { random in
                for round in 0..<3 {
                    let (killed, stopped, partitioned) = (round % 3, (round + 1) % 3, (round + 2) % 3)
                    let link = cluster.links[partitioned]
                    cluster.nodes[stopped].process.kill(SIGSTOP)
                    for proxy in [link.database, link.storage] { proxy.set(.stalled([.toServer, .toClient])) }
                    for _ in 0..<3 {
                        SystemClock.pause(nanoseconds: .random(in: 3_000_000_000...5_000_000_000, using: &random))
                        try cluster.nodes[killed].crash()
                        try cluster.nodes[killed].restart()
                    }
                    SystemClock.pause(nanoseconds: 12_000_000_000)
                    cluster.nodes[stopped].process.kill(SIGCONT)
                    for proxy in [link.database, link.storage] { proxy.set(.open) }
                    for node in cluster.nodes { try node.awaitReadiness() }
                    SystemClock.pause(nanoseconds: 3_000_000_000)
                }
            }
            let events = try cluster.database.query("SELECT encode(content, 'hex') FROM onward.event").map {
                try UploadEvent(savedBytes: SharedStorage.bytes(hex: $0))
            }
            let published = events.filter { $0.kind == .completed }.compactMap(\.file)
            #expect(Set(published).count == published.count)
            #expect(completed.subtracting(published) == [])
        }
    }

    /// The recommended configuration of HAProxy, without TLS.
    private func configuration(of cluster: Cluster, at port: UInt16) throws -> String {
        let root = #filePath.dropLast("Tests/EndToEndTests/Cluster/ClusterFaultTests.swift".count)
        let file = FileManager.default.contents(atPath: root + "docker/proxies/haproxy-scale.cfg")
        var text = String(decoding: try #require(file), as: UTF8.self)
        let listener = try #require(text.firstRange(of: /bind :443 .*/))
        text.replaceSubrange(listener, with: "bind 127.0.0.1:\(port)")
        for (number, node) in cluster.nodes.enumerated() {
            text = text.replacing("node\(number + 1):8080", with: "127.0.0.1:\(node.port)")
        }
        return text
    }
}
