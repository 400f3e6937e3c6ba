import ConformanceKit
import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Command: get", .blocking)
struct GetTests {
    private static let bytes = Payload.bytes(6_000_000)

    private func publish(_ server: ServerProcess, _ name: String = "a.bin") throws {
        try server.place(Self.bytes, as: name)
    }

    @Test("A file is downloaded to the URL's name in a directory, or to the name that -o gives")
    func completeTransfer() throws {
        try withServer { server in
            try publish(server)
            let home = try CommandHome()
            try home.run("get", server.url("/files/a.bin"), "-o", home.path).expect(0)
            try home.run("get", server.url("/files/a.bin"), "-o", home.path + "/b.bin").expect(0)
            for name in ["a.bin", "b.bin"] {
                let found = FileManager.default.contents(atPath: home.path + "/" + name) ?? Data()
                expectSame(Array(found), Self.bytes)
            }
            #expect(home.stateNames == [])
        }
    }

    @Test("--json reports the number of received bytes")
    func json() throws {
        try withServer { server in
            try publish(server)
            let home = try CommandHome()
            let run = try home.run("get", "--json", server.url("/files/a.bin"), "-o", home.path + "/b.bin")
            try run.expect(0)
            let events = try run.objects()
            #expect(events.first?.name == "started" && events.last?.name == "completed")
            #expect(events.last?.number("received") == 6_000_000 && events.last?.number("total") == 6_000_000)
            #expect(events.last?.number("status") != nil && events.last?.text("location") != nil)
            #expect(events.allSatisfy { !$0.members.keys.contains("sent") })
        }
    }

    @Test("After kill -9 and a change of the partial file, the changed bytes are not in the downloaded file")
    func garbled() throws {
        try withServer { server in
            try publish(server)
            let home = try CommandHome()
            let target = home.path + "/b.bin"
            let command = ["get", "--json", server.url("/files/a.bin"), "-o", target]
            let run = try home.start(command + ["--limit-rate", "1M"])
            _ = try run.awaitEvent("progress") { ($0.number("received") ?? 0) > 1_000_000 }
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
            let part = try #require(names.first { $0.hasSuffix(".part") })
            let file = try FileHandle(forUpdating: URL(filePath: home.path + "/" + part))
            try file.seek(toOffset: 300_000)
            try file.write(contentsOf: Data(count: 100_000))
            try file.close()
            try home.run(command).expect(0)
            expectSame(Array(FileManager.default.contents(atPath: target) ?? Data()), Self.bytes)
        }
    }

    @Test("kill -9 of a download that cannot be resumed leaves no file behind")
    func killedWithoutValidator() throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["Content-Length": "6000000"])
            try reply.send([UInt8](Self.bytes[..<1_000_000]))
            reply.stall()
        }
        let home = try CommandHome()
        let target = home.path + "/b.bin"
        for _ in 0..<2 {
            let run = try home.start("get", "--json", server.url + "/a", "-o", target)
            _ = try run.awaitEvent("progress") { $0.number("received") == 1_000_000 }
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
        #expect(!names.contains { $0.hasSuffix(".part") })
        #expect(home.stateNames == [])
    }

    @Test(
        "When kill -9 ends the same command at random times, the number of received bytes never decreases",
        arguments: [1, 2] as [UInt64])
    func killed(seed: UInt64) throws {
        try withServer { server in try repeatedKills(server, seed) }
    }

    private func repeatedKills(_ server: ServerProcess, _ seed: UInt64) throws {
        try publish(server)
        let home = try CommandHome()
        let target = home.path + "/b.bin"
        var random = SeededGenerator(seed: seed)
        var kept: Int64 = 0
        for _ in 0..<60 {
            let run = try home.start(
                "get", "--json", "--limit-rate", "2M", server.url("/files/a.bin"), "-o", target)
            Deadline.pause(.milliseconds(Int.random(in: 500...2500, using: &random)))
            run.process.kill(SIGKILL)
            let ending = try run.process.awaitEnding()
            for event in try run.objects() where event.name == "resumed" {
                #expect(event.number("at") == kept, "seed \(seed)")
            }
            // The file appears only when it is complete.
            if ending == .exited(0) || FileManager.default.fileExists(atPath: target) {
                if kept > 0 { break }
                // This thread was suspended for longer than a download takes.
                try FileManager.default.removeItem(atPath: target)
                continue
            }
            let position = try home.run("status", "--json").objects().first?.number("received") ?? 0
            #expect(position >= kept, "seed \(seed)")
            kept = position
        }
        #expect(kept > 0, "seed \(seed)")
        let found = FileManager.default.contents(atPath: target) ?? Data()
        expectSame(Array(found), Self.bytes, "seed \(seed)")
    }

    @Test("SIGINT pauses a download; resume and the same command continue it; cancel removes its partial file")
    func paused() throws {
        try withServer { server in
            try publish(server)
            let home = try CommandHome()
            let target = home.path + "/b.bin"
            func interrupt() throws {
                let run = try home.start(
                    "get", "--json", "--limit-rate", "1M", server.url("/files/a.bin"), "-o", target)
                _ = try run.awaitEvent("progress") { ($0.number("received") ?? 0) > 300_000 }
                run.process.kill(SIGINT)
                try run.expect(75)
            }
            func partials() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: home.path).filter { $0.hasSuffix(".part") }
            }
            try interrupt()
            #expect(try partials().count == 1)
            try home.run("resume").expect(0)
            expectSame(Array(FileManager.default.contents(atPath: target) ?? Data()), Self.bytes)
            try interrupt()
            try home.run("cancel", String(try #require(home.stateNames.first).dropLast(".state".count))).expect(0)
            #expect(try partials() == [])
            #expect(home.stateNames == [])
        }
    }

    @Test("get of a missing file, to an unusable destination and from an unreachable server ends with the right status")
    func statuses() throws {
        try withServer { server in
            let home = try CommandHome()
            let missing = try home.run("get", "--json", server.url("/files/missing"), "-o", home.path + "/x")
            try missing.expect(69)
            #expect(try missing.objects().last?.name == "failed")
            try home.run("get", "--retries", "0", "http://127.0.0.1:1/x", "-o", home.path + "/x").expect(75)
            let nowhere = try home.run("get", "--json", server.url("/files/missing"), "-o", home.path + "/no/place")
            try nowhere.expect(74)
            #expect(try nowhere.objects().map { $0.text("code") } == ["destination-unusable"])
            #expect(nowhere.errors.contains(home.path + "/no/place"))
            try home.run("get", server.url("/files/missing"), "-o", home.path + "/x/").expect(74)
        }
    }

    @Test("The command reports the path of the file that it writes")
    func reportedPath() throws {
        try withServer { server in
            try publish(server)
            let home = try CommandHome()
            let run = try home.run("get", server.url("/files/a.bin"), "-o", home.path + "/b.bin")
            try run.expect(0)
            #expect(run.errors.contains("Receiving \(server.url("/files/a.bin")) as \(home.path)/b.bin\n"))
        }
    }

    @Test("A permanent failure reports the path of the received bytes, and how to remove them")
    func refusedLater() throws {
        let server = try ScriptedServer { request, reply in
            if request.fields.contains("Range") { return try reply.respond(451) }
            try reply.begin(200, ["Content-Length": "6000000", "ETag": "\"a\""])
            try reply.send([UInt8](Self.bytes[..<1_000_000]))
            reply.close()
        }
        let home = try CommandHome()
        let run = try home.run("get", server.url + "/a", "-o", home.path + "/b.bin")
        try run.expect(69)
        let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
        let part = try #require(names.first { $0.hasSuffix(".part") })
        #expect(run.errors.contains("The received bytes are kept in \(home.path)/\(part)."))
        let state = String(try #require(home.stateNames.first).dropLast(".state".count))
        #expect(run.errors.contains("'onward cancel \(state)'"))
        try home.run("cancel", state).expect(0)
        #expect(try !FileManager.default.contentsOfDirectory(atPath: home.path).contains(part))
    }
}
