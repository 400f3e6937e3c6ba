import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("Crashes of the server", .blocking)
struct CrashTests {
    private static let clients = 5
    /// The number of kills in one history. The default suite runs four histories.
    private static let kills = ProcessInfo.processInfo.environment["ONWARD_CRASHES"].flatMap { Int($0) } ?? 26

    @Test(
        "OFF-09 OFF-10: kill -9 at any time decreases no reported offset, and neither loses nor duplicates a file",
        arguments: [0, 1, 2, 3])
    func kill(_ part: Int) throws {
        var random = SeededGenerator.part(part)
        let seed = "ONWARD_SEED=\(SeededGenerator.runSeed), history \(part)"
        // The reported data survives the end of the process in either mode.
        let durability = part == 3 ? "relaxed" : "acknowledged"
        try withServer("--durability", durability) { server in
            let world = CrashWorld(server)
            let clients = try start(world, &random)
            let watcher = try watch(world, port: server.port)
            let began = ContinuousClock.now
            do {
                for _ in 0..<Self.kills { try killAndRestart(server, world, &random) }
            } catch {
                Issue.record(error, "\(seed)")
            }
            world.end()
            for client in clients {
                for error in client.awaitEnd() { Issue.record(error, "\(seed)") }
            }
            world.close()
            for error in watcher.awaitEnd() { Issue.record(error, "\(seed)") }
            do { try world.inspectFiles(again: true) } catch { Issue.record(error, "\(seed)") }
            // Only the uploads whose location no client got are left.
            #expect(server.unfinished.count <= world.unfinished, "\(seed)")
            #expect(world.completed > 0, "\(seed)")
            print("\(seed), \(durability): \(Self.kills) kills, \(world.summary), \(ContinuousClock.now - began)")
        }
    }

    private func killAndRestart(
        _ server: ServerProcess, _ world: CrashWorld, _ random: inout SeededGenerator
    ) throws {
        var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000 * Int.random(in: 1...200, using: &random))
        nanosleep(&pause, nil)
        world.willCrash()
        defer { world.didRestart() }
        try server.crash()
        // The files no longer change.
        try world.inspectFiles()
        try server.restart()
    }

    @Test("OFF-10 CRE-15: a server that receives SIGTERM keeps all bytes that arrived, and does not wait for clients")
    func stop() throws {
        try withServer("--drain-timeout", "1h", "--idle-timeout", "1h") { server in
            let sent = try (0..<100).map { number in
                let connection = try server.connect()
                try connection.send(
                    .creation(.v8, "PUT", "/files/\(number)", complete: true, .declared(10_000_000)))
                let location = try #require(try connection.requireInterim().location)
                let count = number * 20_000
                try connection.send(BytePool.repeated(0..<count))
                return (connection: connection, location: location, count: count)
            }
            let total = sent.reduce(0) { $0 + $1.count }
            #expect(eventually { server.unfinished.values.reduce(0, +) == total })
            #expect(try server.stop() == .exited(0))
            try server.restart()
            for upload in sent {
                let head = try server.exchange(.retrieval(.v8, upload.location))
                #expect(head.offset == Int64(upload.count))
                #expect(head.complete == false)
            }
        }
    }

    private func start(_ world: CrashWorld, _ random: inout SeededGenerator) throws -> [ClientThread] {
        try (0..<Self.clients).map { number in
            let choices = SeededGenerator(seed: random.next())
            return try ClientThread("client-\(number)") {
                var client = CrashClient(number, world: world, random: choices)
                try client.run()
            }
        }
    }

    /// Checks the files all the time, over HTTP and in the directory.
    private func watch(_ world: CrashWorld, port: UInt16) throws -> ClientThread {
        try ClientThread("watcher") {
            while !world.isOver {
                let life = world.awaitServer()
                do {
                    try world.inspectFiles()
                    guard let name = world.expectedNames.randomElement() else { continue }
                    let response = try RawConnection(port: port).exchange(.get("/files/\(name)"))
                    let isComplete = response.status == 200 && world.isComplete(Data(response.content), name)
                    guard isComplete || response.status == 404 else {
                        throw TestFailure("GET \(name): \(response.status), \(response.content.count) bytes")
                    }
                } catch {
                    if error is TestFailure { throw error }
                    guard world.hasCrashed(since: life) else { throw error }
                }
            }
        }
    }
}
