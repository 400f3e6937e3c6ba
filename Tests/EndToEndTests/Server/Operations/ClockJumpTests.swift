import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// A wall clock that is set while the server is running or stopped.
@Suite(
    "Clock jumps", .blocking,
    .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
struct ClockJumpTests {
    private static let day = 86_400

    private func withShiftedServer(
        _ options: [String], _ body: (ServerProcess, ShiftedClock) throws -> Void
    ) throws {
        let clock = try ShiftedClock()
        let server = try ServerProcess(options, environment: clock.environment)
        defer { server.process.kill(SIGKILL) }
        do { try body(server, clock) } catch { Issue.record(error, "\(server.log.suffix(3000))") }
    }

    /// The year of `Date`.
    private func year(_ response: Response) throws -> Int {
        let words = try #require(response.value("Date")).split(separator: " ")
        return try #require(words.count > 3 ? Int(words[3]) : nil)
    }

    @Test(
        "LIM-19: a jump of the clock while the server is running changes no lifetime, and is logged",
        arguments: [4000, -4000])
    func whileRunning(days: Int) throws {
        try withShiftedServer(["--max-age", "1h", "--keep-completed", "1h"]) { server, clock in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            let now = try year(server.exchange(.get("/healthz")))
            let finished = try server.begin(.v8, "/files/other.bin", BytePool.repeated(0..<1000))
            #expect(try server.exchange(.append(.v8, finished, at: 1000, complete: true, .bytes([1]))).status == 201)
            try clock.shift(by: days * Self.day)
            // With a shared storage the clock of the database determines lifetimes.
            let isShared = server.shared != nil
            if !isShared { try server.awaitLog("the wall clock jumped \(days < 0 ? "back" : "forward") by ") }
            // After this pause, the sweep has run since the jump.
            Deadline.pause(.milliseconds(2200))
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204 && head.offset == 1000)
            #expect((3000...3600).contains(try #require(head.limits?["max-age"])))
            // Date follows the wall clock.
            #expect(try (9...12).contains(abs(year(head) - now)))
            #expect(try server.exchange(.retrieval(.v8, finished)).complete == true)
            #expect(try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([1]))).status == 201)
            let file = try server.exchange(.get("/files/file.bin"))
            #expect(file.status == 200)
            // There is one log line for each jump.
            #expect(server.log.components(separatedBy: "the wall clock jumped").count == (isShared ? 1 : 2))
        }
    }

    @Test("LIM-19: after a jump back an upload still expires after its lifetime")
    func expiresAfterJumpBack() throws {
        try withShiftedServer(["--max-age", "3s"]) { server, clock in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            try clock.shift(by: -400 * Self.day)
            #expect(try eventually { try [404, 410].contains(server.exchange(.retrieval(.v8, location)).status) })
        }
    }

    @Test("LIM-19: downtime is measured by the wall clock, after a stop and after a crash", arguments: [false, true])
    func downtime(isCrash: Bool) throws {
        try withShiftedServer(["--max-age", "1h"]) { server, clock in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            func restart(after shift: Int) throws {
                if isCrash { try server.crash() } else { _ = try server.stop() }
                try clock.shift(by: shift)
                try server.restart()
            }
            try restart(after: 2400)
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204)
            #expect((1000...1200).contains(try #require(head.limits?["max-age"])))
            // A jump while the server is running does not count, before or after the restart.
            try clock.shift(by: 2400 + 30 * Self.day)
            try server.awaitLog("the wall clock jumped forward")
            Deadline.pause(.milliseconds(1500))
            try restart(after: 2400 + 30 * Self.day)
            #expect(try server.exchange(.retrieval(.v8, location)).status == 204)
            try restart(after: 4800 + 30 * Self.day)
            #expect(try [404, 410].contains(server.exchange(.retrieval(.v8, location)).status))
            #expect(eventually { server.unfinished.isEmpty })
        }
    }

    @Test(
        "LIM-19: after a downtime that seems longer than a lifetime, nothing expires for an hour",
        arguments: [false, true])
    func longDowntime(isCrash: Bool) throws {
        try withShiftedServer([]) { server, clock in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            if isCrash { try server.crash() } else { _ = try server.stop() }
            try clock.shift(by: 3000 * Self.day)
            try server.restart()
            try server.awaitLog("no upload expires within the first hour")
            Deadline.pause(.milliseconds(2200))
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204 && head.offset == 1000)
            #expect((3500...3600).contains(try #require(head.limits?["max-age"])))
            // The clock is corrected, so there was no downtime.
            try clock.shift(by: 0)
            try server.awaitLog("the wall clock jumped back")
            #expect(
                try eventually {
                    let age = try server.exchange(.retrieval(.v8, location)).limits?["max-age"] ?? 0
                    return age > 604_000 && age <= 604_800
                })
            #expect(try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([1]))).status == 201)
        }
    }
}
