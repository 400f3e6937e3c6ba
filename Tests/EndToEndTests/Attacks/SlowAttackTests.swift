import FoundationEssentials
import Glibc
import Testing

/// slowhttptest with 1,200 connections of one address against a server with default settings: `make test-attacks`.
@Suite(
    "Attacks by slow connections", .serialized, .timeLimit(.minutes(15)), .blocking,
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

        /// Whether its connections stay open for as long as the server lets them.
        fileprivate var holdsConnections: Bool { self != .ranges }
    }

    @Test("transfers from other addresses continue, and the long one is not interrupted", arguments: Mode.allCases)
    func attack(mode: Mode) throws {
        let (port, other) = (try FixedPort.next(), try FixedPort.next())
        try withServer("--listen", "127.0.0.1:\(port)", "--listen", "[::1]:\(other)") { server in
            let big = Payload.bytes(20 << 20)
            try server.place(big, as: "big")
            let home = try CommandHome()
            let content = Payload.bytes(5_000_000)
            let source = try home.file(content, "source")
            let url = "http://[::1]:\(other)/files/"
            let lasting = try home.start(
                "put", "--json", "--limit-rate", "250K", try home.file(content, "lasting"), url + "lasting")
            let attack = try ChildProcess(
                "/usr/bin/slowhttptest",
                [
                    mode.rawValue, "-c", "1200", "-r", "400", "-i", "5", "-l", "60", "-p", "3", "-u",
                    "http://127.0.0.1:\(server.port)/files/\(mode == .content ? "slow" : "big")",
                ] + mode.options)
            defer { attack.kill(SIGKILL) }
            let limit = mode.holdsConnections ? 950 : 100
            let begun: Bool? = Deadline.poll(within: .seconds(30)) { server.connectionThreads > limit ? true : nil }
            #expect(begun == true, "the attack has all of its connections")
            let clock = ContinuousClock()
            for round in 0..<5 {
                let start = clock.now
                try home.run("put", "--quiet", source, url + "f\(round)").expect(0)
                let target = home.path + "/f\(round)"
                try home.run("get", "--quiet", url + "big", "-o", target).expect(0)
                let isSame = FileManager.default.contents(atPath: target) == Data(big)
                #expect(isSame)
                try FileManager.default.removeItem(atPath: target)
                for arguments in [["-T", source, "http://127.0.0.1:\(port)/files/c\(round)"], [url + "f\(round)"]] {
                    let curl = try ChildProcess(
                        "/usr/bin/curl",
                        ["-sSf", "-m", "30", "-o", "/dev/null"]
                            + (arguments.count > 1 ? ["--interface", "127.0.0.2"] : []) + arguments)
                    #expect(try curl.awaitEnding() == .exited(0), "\(curl.errorOutput)")
                }
                print("\(mode) round \(round): \(clock.now - start), \(server.connectionThreads) connections")
                #expect(server.connectionThreads <= 1100)
                Deadline.pause(.seconds(1))
            }
            #expect(attack.ending == nil, "the attack lasted until the end: \(attack.errorOutput.suffix(500))")
            try lasting.expect(0)
            #expect(try lasting.objects().allSatisfy { $0.name != "interrupted" })
            let isSame = server.fileContent("lasting") == content
            #expect(isSame)
        }
    }
}
