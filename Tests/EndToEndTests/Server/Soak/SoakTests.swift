import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Clients send requests of all kinds at the same time while the server is restarted. Then they send such requests
/// without restarts, and the server's resources are measured. `make soak` uses two hundred clients for ten minutes.
@Suite("Soak", .blocking(limit: .seconds(30 * 60)))
struct SoakTests {
    private static func number(_ name: String, _ standard: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
    }

    private static let seconds = number("ONWARD_SOAK_SECONDS", 6)
    private static let clients = number("ONWARD_SOAK_CLIENTS", 12)
    /// Whether the run is long enough for uploads that no client resumes to expire.
    fileprivate static let isLong = seconds >= 180
    fileprivate static let life = 60

    @Test(
        "SEC-07 OFF-10: uploads, cuts, take-overs, cancellations, downloads and restarts leave only complete files"
    )
    func soak() throws {
        let life = Self.isLong ? ["--max-age", "\(Self.life)s", "--keep-completed", "20s"] : []
        let server = try ServerProcess(["--max-connections", "2000"] + life)
        defer { server.process.kill(SIGKILL) }
        var random = SeededGenerator.part(77)
        let seed = "ONWARD_SEED=\(SeededGenerator.runSeed)"
        do {
            let first = try Workload(server, number: 0, clients: Self.clients, &random)
            let parts = max(2, Self.seconds / 20)
            for part in 0..<parts {
                Deadline.pause(.milliseconds(Self.seconds * 500 / parts))
                try restart(server, first.world, gracefully: part % 2 == 0)
            }
            try first.end()
            // From here on the server process stays the same.
            let second = try Workload(server, number: 1, clients: Self.clients, &random)
            Deadline.pause(.milliseconds(Self.seconds * 150))
            try second.end()
            let before = try use(of: server)
            // Connections to a database and an object storage stay open for later requests.
            let kept = server.shared == nil ? 0 : 32 * server.process.all.count
            let third = try Workload(server, number: 2, clients: Self.clients, &random)
            Deadline.pause(.milliseconds(Self.seconds * 350))
            try third.end()
            // Resources that the server is still releasing, or uses for a moment, are not a leak.
            var after = try use(of: server)
            let settled = Deadline(in: .seconds(60))
            while after.descriptors > before.descriptors + kept || after.threads > before.threads, !settled.isOver {
                Deadline.pause(.milliseconds(50))
                after = try use(of: server)
            }
            print("\(seed): \(first.world.summary); \(third.world.summary); \(before), then \(after)")
            #expect(after.descriptors <= before.descriptors + kept, "\(seed): \(before), \(after)")
            #expect(after.threads <= before.threads, "\(seed): \(before), \(after)")
            let growth = (after.resident - before.resident) / server.process.all.count
            // With an object storage each upload that is slow for a moment has a buffer.
            let buffers = server.shared == nil ? 24 << 10 : 64 << 10
            #expect(growth <= buffers, "\(seed): \(before), \(after)")
            let unfinished = [first, second, third].reduce(0) { $0 + $1.world.unfinished }
            if Self.isLong {
                #expect(
                    eventually(within: .seconds(120)) { server.unfinished.isEmpty },
                    "\(seed): \(server.unfinished.count) unfinished uploads are left")
            } else {
                #expect(server.unfinished.count <= unfinished, "\(seed)")
            }
            #expect(try server.stop() == .exited(0))
        } catch {
            Issue.record(error, "\(seed)\n\(server.log.suffix(4000))")
        }
    }

    private func restart(_ server: ServerProcess, _ world: CrashWorld, gracefully: Bool) throws {
        world.willCrash()
        defer { world.didRestart() }
        if gracefully {
            guard try server.stop() == .exited(0) else { throw TestFailure("the server did not stop: \(server.log)") }
        } else {
            try server.crash()
        }
        try server.restart()
    }

    /// The resources of the server when no client is connected.
    private func use(of server: ServerProcess) throws -> ProcessUse {
        #expect(eventually { server.connectionThreads == 0 })
        return try ProcessUse(of: server)
    }

    /// A number of clients that run at the same time.
    private struct Workload {
        let world: CrashWorld
        private let threads: [ClientThread]

        init(_ server: ServerProcess, number: Int, clients: Int, _ random: inout SeededGenerator) throws {
            let world = CrashWorld(
                server, lifetime: SoakTests.isLong ? .seconds(SoakTests.life - 2) : .seconds(86400))
            self.world = world
            threads = try (0..<clients).map { client in
                let choices = SeededGenerator(seed: random.next())
                return try ClientThread("client-\(client)") {
                    if client % 3 == 2 {
                        var visitor = SoakVisitor(world: world, random: choices)
                        try visitor.run()
                    } else {
                        var uploader = CrashClient(number * 1000 + client, world: world, random: choices, removes: true)
                        try uploader.run()
                    }
                }
            }
        }

        /// Waits until all clients have finished, and checks the files.
        func end() throws {
            world.end()
            for thread in threads { for error in thread.awaitEnd() { throw error } }
            guard world.completed > 0 else { throw TestFailure("nothing was uploaded") }
            try world.inspectFiles(again: true)
            for name in try world.publishedNames() {
                let response = try RawConnection(port: world.port).exchange(Request("DELETE", "/files/\(name)"))
                guard response.status == 204 else { throw TestFailure("DELETE of \(name): \(response)") }
            }
        }
    }
}
