import ConformanceKit
import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Command: put with interruptions", .blocking)
struct PutInterruptionTests {
    private static let size = 6_000_000

    /// Starts a slow upload and waits until the server has received some of it.
    private func begin(
        _ home: CommandHome, _ file: String, _ url: String, _ options: String...
    ) throws -> CommandRun {
        let run = try home.start(["put", "--json", "--limit-rate", "1M"] + options + [file, url])
        _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 400_000 }
        _ = try #require(pollUntil(within: .seconds(60)) { home.stateNames.first })
        return run
    }

    @Test(
        "When kill -9 ends the same command at random times, only the last bytes before a kill are sent twice",
        arguments: 1...3 as ClosedRange<UInt64>)
    func killed(seed: UInt64) throws {
        try withServer { server in
            let proxy = try FaultProxy(to: server.port) { nil }
            let home = try CommandHome()
            let bytes = Payload.bytes(Self.size, seed: seed)
            let command = [
                "put", "--limit-rate", "4M", try home.file(bytes), proxy.url + "/files/a.bin",
            ]
            var random = SeededGenerator(seed: seed)
            var kills: Int64 = 0
            while true {
                let run = try home.start(command)
                Deadline.pause(.milliseconds(Int.random(in: 20...700, using: &random)))
                run.process.kill(SIGKILL)
                let ending = try run.process.awaitEnding()
                if ending == .exited(0) { break }
                #expect(ending == .signaled(SIGKILL), "seed \(seed): \(run.errors)")
                kills += 1
                // The upload was already complete: without a state, the same command would start a new upload.
                if run.errors.contains("Sent "), home.stateNames.isEmpty { break }
                guard kills < 60 else { break }
            }
            expectSame(server.published("a.bin") ?? [], bytes, "seed \(seed)")
            // The additional bytes are those that were in flight at each kill, and the heads.
            let extra = proxy.bytesToServer - Int64(Self.size)
            #expect(extra <= kills * 600_000 + 200_000, "seed \(seed): \(extra) bytes more, \(kills) kills")
            #expect(home.stateNames == [])
        }
    }

    @Test("A short file that is put at its URL is there once and completely, whenever kill -9 ended earlier runs")
    func shortKilled() throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(200_000)
            let command = ["put", "--json", try home.file(bytes), server.url("/files/a.bin")]
            var random = SeededGenerator(seed: 17)
            for _ in 0..<20 {
                let run = try home.start(command)
                Deadline.pause(.milliseconds(Int.random(in: 5...60, using: &random)))
                run.process.kill(SIGKILL)
                _ = try run.process.awaitEnding()
                if let published = server.published("a.bin") { expectSame(published, bytes) }
            }
            let last = try home.run(command)
            try last.expect(0)
            #expect(try last.objects().last?.name == "completed")
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(server.publishedNames() == ["a.bin"] && home.stateNames == [])
        }
    }

    @Test("Without a 104, the upload of a large file is still resumed, and a small file is sent again")
    func withoutInterimResponses() throws {
        try withServer("--interim", "off") { server in
            for (name, size) in [("large.bin", Self.size), ("small.bin", 2_000_000)] {
                let home = try CommandHome()
                let bytes = Payload.bytes(size)
                let put = ["put", "--json", try home.file(bytes), server.url("/files/" + name)]
                let run = try home.start(put + ["--limit-rate", "1M"])
                _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 1_000_000 }
                run.process.kill(SIGKILL)
                _ = try run.process.awaitEnding()
                let again = try home.run(put)
                try again.expect(0)
                let resumed = try again.objects().first { $0.name == "resumed" }
                #expect(((resumed?.number("at") ?? 0) > 0) == (size == Self.size), "\(again.output)")
                expectSame(server.published(name) ?? [], bytes)
            }
        }
    }

    @Test(
        "SIGINT, SIGTERM and SIGHUP pause an upload and end put with 75, and the same command continues",
        arguments: [SIGINT, SIGTERM, SIGHUP])
    func paused(signal: Int32) throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(Self.size)
            let file = try home.file(bytes)
            let run = try begin(home, file, server.url("/files/a.bin"))
            run.process.kill(signal)
            try run.expect(75)
            let last = try #require(try run.objects().last)
            #expect(last.name == "interrupted" && last.text("code") == "paused")
            #expect(run.errors.contains("onward resume big.bin-"))
            let again = try home.run("put", "--json", file, server.url("/files/a.bin"))
            try again.expect(0)
            let resumed = try #require(try again.objects().first { $0.name == "resumed" })
            #expect((resumed.number("at") ?? 0) > 300_000)
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(home.stateNames == [])
        }
    }

    @Test("A second SIGINT ends the command without waiting for the server")
    func secondSignal() throws {
        // This server responds to no request, not even to a DELETE.
        let server = try ScriptedServer { _, reply in reply.stall() }
        let home = try CommandHome()
        let run = try home.start("put", "--careful", try home.file([1]), server.url + "/x")
        #expect(server.awaitRequests(1))
        run.process.kill(SIGINT)
        run.process.kill(SIGINT)
        #expect(try run.process.awaitEnding(within: .seconds(60)) == .exited(75))
    }

    @Test("put of a source that was touched after an interruption ends with 65, and sends nothing until --restart")
    func touched() throws {
        try withServer { server in
            let proxy = try FaultProxy(to: server.port) { nil }
            let home = try CommandHome()
            let file = try home.file(Payload.bytes(Self.size))
            let url = proxy.url + "/files/a.bin"
            let run = try begin(home, file, url)
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            Deadline.pause(.milliseconds(200))
            utimensat(AT_FDCWD, file, nil, 0)
            let before = (proxy.bytesToServer, proxy.connections)
            for _ in 0..<2 {
                let again = try home.run("put", "--json", file, url)
                try again.expect(65)
                #expect(try again.objects().map(\.name) == ["failed"])
                #expect(try again.objects().last?.text("code") == "source-changed")
                #expect(again.errors.contains("--restart") && again.errors.contains("(modification time)"))
            }
            try home.run("resume", "--json").expect(65)
            #expect(before == (proxy.bytesToServer, proxy.connections))
            #expect(home.stateNames.count == 1)
            try home.run("put", "--restart", file, url).expect(0)
            #expect(server.published("a.bin")?.count == Self.size)
            #expect(home.stateNames == [])
        }
    }

    @Test("A changed size or inode counts as a change, too", arguments: ["append", "replace"])
    func changed(how: String) throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(Self.size)
            let file = try home.file(bytes)
            let run = try begin(home, file, server.url("/files/a.bin"))
            run.process.kill(SIGINT)
            try run.expect(75)
            var status = stat()
            stat(file, &status)
            if how == "append" {
                let handle = try FileHandle(forWritingTo: URL(filePath: file))
                try handle.seekToEnd()
                try handle.write(contentsOf: Data([1]))
                try handle.close()
            } else {
                // A file with the same bytes and the old time, but another inode.
                let other = try home.file(bytes, "other")
                rename(other, file)
            }
            let times = [status.st_atim, status.st_mtim]
            utimensat(AT_FDCWD, file, times, 0)
            try home.run("put", file, server.url("/files/a.bin")).expect(65)
            #expect(server.published("a.bin") == nil)
        }
    }

    @Test("The second of two equal commands at the same time ends with 75 and names the process of the first")
    func twice() throws {
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file(Payload.bytes(Self.size))
            // The proxy holds the upload back, so that the upload is in progress for as long as the other commands run.
            let proxy = try HoldingProxy(upstream: server.port, limit: 600_000)
            let url = proxy.url + "/files/a.bin"
            let run = try begin(home, file, url)
            let second = try home.run("put", "--json", file, url)
            try second.expect(75)
            #expect(second.errors.contains("process \(run.process.identifier)"))
            #expect(second.errors.contains(file))
            let elsewhere = try home.run("put", "--state", home.path + "/mine", file, url)
            try elsewhere.expect(75)
            // A command with the same file and another URL is independent of it.
            try home.run("put", file, server.url("/files/b.bin")).expect(0)
            try home.run("resume").expect(0)
            let state = try #require(home.stateNames.first).dropLast(".state".count)
            try home.run("resume", String(state)).expect(75)
            try home.run("cancel", String(state)).expect(75)
            #expect(try home.run("status").output.contains("running, process \(run.process.identifier)"))
            run.process.kill(SIGINT)
            try run.expect(75)
        }
    }

    @Test("After interruptions of the connection the command resumes by itself, and reports each of them")
    func cuts() throws {
        try withServer { server in
            let proxy = try FaultProxy(to: server.port, seed: 7, bytes: 300_000...1_500_000)
            let home = try CommandHome()
            let bytes = Payload.bytes(Self.size)
            let run = try home.run("put", "--json", try home.file(bytes), proxy.url + "/files/a.bin")
            try run.expect(0)
            #expect(proxy.cuts > 0)
            let names = Set(try run.objects().map(\.name))
            #expect(names.contains("interrupted") && names.contains("resumed"))
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("put of a source that changes while it is sent ends with 65, and the upload is removed")
    func changedMeanwhile() throws {
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file(Payload.bytes(Self.size))
            let run = try begin(home, file, server.url("/files/a.bin"))
            utimensat(AT_FDCWD, file, nil, 0)
            try run.expect(65)
            #expect(try run.objects().last?.text("code") == "source-changed")
            #expect(server.published("a.bin") == nil)
            #expect(home.stateNames == [])
        }
    }
}
