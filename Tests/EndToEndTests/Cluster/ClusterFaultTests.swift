import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Clients of servers that fail", .blocking, .serialized, .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterFaultTests {
    /// With ONWARD_SCALE=1 there are many clients, and the faults last longer than a lease.
    private static let isLong = getenv("ONWARD_SCALE") != nil
    private static let longTest: Comment = "takes a minute: make test-scale runs it"
    private static let clients = isLong ? 100 : 6

    /// Runs clients of all nodes while `break` runs, and then until each has completed its file.
    private func withClients(
        of cluster: Cluster, seed: UInt64, _ faults: (inout SeededGenerator) throws -> Void
    ) throws {
        let world = ClusterClient.World(ports: cluster.nodes.map(\.port))
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
        "no acknowledged byte is lost if the database is killed and a synchronous standby server replaces it",
        .enabled(if: isLong, longTest))
    func failover() throws {
        try withCluster(3, [], Cluster.Features(hasStandby: true)) { cluster in
            let standby = try #require(cluster.standby)
            try withClients(of: cluster, seed: 15) { random in
                SystemClock.pause(nanoseconds: .random(in: 2_000_000_000...5_000_000_000, using: &random))
                cluster.database.kill()
                SystemClock.pause(nanoseconds: .random(in: 0...2_000_000_000, using: &random))
                try standby.promote()
                for node in cluster.nodes { try node.awaitReadiness() }
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
}
