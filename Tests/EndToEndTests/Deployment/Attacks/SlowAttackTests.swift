import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Runs slowhttptest with 1,200 connections from one address to a server with default settings: `make test-attacks`.
@Suite(
    "Attacks by slow connections", .serialized, .blocking,
    .enabled(if: getenv("ONWARD_ATTACKS") != nil, "make test-attacks runs it"))
struct SlowAttackTests {
    /// The four modes of slowhttptest.
    enum Mode: String, CaseIterable, Sendable {
        case heads = "-H"
        case content = "-B"
        case ranges = "-R"
        case reading = "-X"

        fileprivate var options: [String] {
            switch self {
            case .heads: []
            case .content: ["-t", "PUT", "-s", "1000000", "-x", "10"]
            case .ranges: ["-t", "GET", "-a", "5", "-b", "2000"]
            case .reading: ["-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"]
            }
        }

        /// Whether the attack keeps its connections open until the server closes them.
        fileprivate var holdsConnections: Bool { self != .ranges }
    }

    @Test(
        "during an attack, transfers from another address continue, and a long transfer is not interrupted",
        .enabled(
            if: AttackNetwork.mayBePossible,
            "needs root and `ip` (iproute2); without them only attacks from this machine, a trusted peer, are tested"),
        arguments: Mode.allCases)
    func attackFromAnotherAddress(mode: Mode) throws {
        let network = try AttackNetwork()
        let port = try FixedPort.next()
        try withServer("--listen", "0.0.0.0:\(port)", "--allow-anonymous") { server in
            try attack(
                server, mode, on: "\(network.attack.host):\(port)", in: network.attack.namespace,
                users: try CommandHome(networkNamespace: network.users.namespace),
                at: "http://\(network.users.host):\(port)/files/")
            let client = network.attack.host.split(separator: ".").dropLast().joined(separator: ".") + ".2"
            if mode.holdsConnections {
                #expect(server.log.contains("; \(client) has the most connections, "), "\(server.log.suffix(1000))")
            }
        }
        withExtendedLifetime(network) {}
    }

    @Test(
        "an attack from this machine, a trusted peer, leaves the server usable for its other clients",
        arguments: Mode.allCases)
    func attackFromThisMachine(mode: Mode) throws {
        let (port, other) = (try FixedPort.next(), try FixedPort.next())
        try withServer("--listen", "127.0.0.1:\(port)", "--listen", "[::1]:\(other)") { server in
            try attack(
                server, mode, on: "127.0.0.1:\(port)", in: nil, users: try CommandHome(),
                at: "http://[::1]:\(other)/files/")
        }
    }

    /// - Parameters:
    ///   - authority: the address of the server for the attack.
    ///   - namespace: the network namespace of the attack; `nil` for the namespace of this process.
    ///   - url: the collection to which the users upload.
    private func attack(
        _ server: ServerProcess, _ mode: Mode, on authority: String, in namespace: String?, users: CommandHome,
        at url: String
    ) throws {
        let big = Payload.bytes(20 << 20)
        try server.place(big, as: "big")
        let content = Payload.bytes(5_000_000)
        let source = try users.file(content, "source")
        let lasting = try users.start(
            "put", "--json", "--limit-rate", "250K", try users.file(content, "lasting"), url + "lasting")
        let command =
            [
                "/usr/bin/slowhttptest", mode.rawValue, "-c", "1200", "-r", "400", "-i", "5", "-l", "60", "-p", "3",
                "-u", "http://\(authority)/files/\(mode == .content ? "slow" : "big")",
            ] + mode.options
        let attack = try start(command, in: namespace)
        defer { attack.kill(SIGKILL) }
        let limit = mode.holdsConnections ? 950 : 100
        #expect(
            eventually(within: .seconds(30)) { server.connectionThreads > limit },
            "the attack has opened all of its connections")
        let clock = ContinuousClock()
        for round in 0..<5 {
            let start = clock.now
            try users.run("put", "--quiet", source, url + "f\(round)").expect(0)
            let target = users.path + "/f\(round)"
            try users.run("get", "--quiet", url + "big", "-o", target).expect(0)
            let isSame = FileManager.default.contents(atPath: target) == Data(big)
            #expect(isSame)
            try FileManager.default.removeItem(atPath: target)
            for arguments in [["-T", source, url + "c\(round)"], [url + "f\(round)"]] {
                let curl = try self.start(
                    ["/usr/bin/curl", "-sSf", "-m", "30", "-o", "/dev/null"] + arguments, in: users.networkNamespace)
                #expect(try curl.awaitEnding() == .exited(0), "\(curl.errorOutput)")
            }
            print("\(mode) round \(round): \(clock.now - start), \(server.connectionThreads) connections")
            #expect(server.connectionThreads <= 1100)
            Deadline.pause(.seconds(1))
        }
        #expect(attack.ending == nil, "the attack lasted until the end: \(attack.errorOutput.suffix(500))")
        try lasting.expect(0)
        #expect(try lasting.objects().allSatisfy { $0.name != "interrupted" })
        let isSame = server.published("lasting") == content
        #expect(isSame)
    }

    private func start(_ command: [String], in namespace: String?) throws -> ChildProcess {
        let command = (namespace.map { ["/usr/bin/ip", "netns", "exec", $0] } ?? []) + command
        return try ChildProcess(command[0], Array(command.dropFirst()))
    }
}
