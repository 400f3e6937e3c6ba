import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite("Command: put of several files, completed by other commands", .blocking)
struct SeveralFilesTests {
    /// Interrupts a command with two files during the second file.
    /// - Returns: The arguments of the command.
    private func interrupt(_ home: CommandHome, _ url: String) throws -> [String] {
        let small = try home.file([1, 2, 3], "small.bin")
        let big = try home.file(Payload.bytes(4_000_000), "big.bin")
        let command = ["put", "--json", small, big, url]
        let run = try home.start(command + ["--limit-rate", "1M"])
        _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
        run.process.kill(SIGTERM)
        try run.expect(75)
        #expect(try home.lists().count == 1)
        return command
    }

    /// The files in the events of this name.
    private func files(_ run: CommandRun, _ event: String) throws -> [String] {
        try run.objects().filter { $0.name == event }.compactMap { $0.text("file") }
    }

    @Test(
        "After another command has sent the last file, the list is removed, and the same put sends all files again",
        arguments: ["resume", "put"])
    func ended(by what: String) throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            try home.run(what == "put" ? ["put", command[3], command[4]] : ["resume"]).expect(0)
            #expect(try home.lists() == [])
            let again = try home.run(command)
            try again.expect(0)
            #expect(try files(again, "started") == [command[2], command[3]])
            #expect(server.publishedNames().count == 4)
            #expect(try home.lists() == [])
        }
    }

    /// A number of files with which a signal after the first file arrives before the last one is sent.
    private static let countBetween = 200

    @Test("A signal between two files ends the command with 75; the same command sends the remaining files, each once")
    func betweenFiles() throws {
        try withServer { server in
            let home = try CommandHome()
            let files = try (0..<Self.countBetween).map { try home.file([UInt8($0)], "file-\($0)") }
            for round in 0..<8 {
                let command = ["put", "--json"] + files + [server.url("/files/round-\(round)/")]
                let run = try home.start(command)
                _ = try run.awaitEvent("completed") { _ in true }
                run.process.kill(SIGTERM)
                try run.expect(75)
                #expect(try home.lists().count == 1)
                try home.run(command).expect(0)
                #expect(try home.lists() == [])
            }
            let names = (0..<8).flatMap { round in
                ["round-\(round)"] + (0..<Self.countBetween).map { "round-\(round)/file-\($0)" }
            }
            #expect(Set(server.publishedNames()) == Set(names))
        }
    }

    @Test("After the upload of one of its files is canceled, a command starts again with all files")
    func canceled() throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            try home.run("cancel", String(try #require(home.stateNames.first).dropLast(".state".count))).expect(0)
            #expect(try home.lists() == [])
            let again = try home.run(command)
            try again.expect(0)
            #expect(try files(again, "started") == [command[2], command[3]])
        }
    }

    @Test("Files that an earlier run sent are reported as sent")
    func reportedAsSent() throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            let again = try home.run(command.filter { $0 != "--json" })
            try again.expect(0)
            #expect(again.errors.contains("small.bin was already sent by an earlier run"))
            #expect(!again.errors.contains("Sent small.bin") && again.errors.contains("Sent big.bin"))
            #expect(try home.lists() == [])
        }
    }

    /// A server without resumable uploads that accepts files in a collection.
    private func collection() throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            let name = request.fields["Content-Disposition"] ?? ""
            guard request.method == "POST" else { return try reply.respond(404) }
            try reply.discardContent()
            try reply.respond(201, ["Location": "/files/u/\(abs(name.hashValue))"])
        }
    }

    @Test("If a file cannot be noted in the list of another command, the command warns in any order of the lists")
    func unwritableList() throws {
        let home = try CommandHome()
        let states = home.states
        let others = Monitor<[String]>([])
        let server = try ScriptedServer { request, reply in
            guard request.method == "POST" else { return try reply.respond(404) }
            try reply.discardContent()
            let name = request.fields["Content-Disposition"] ?? ""
            if name.contains("rejected") { return try reply.respond(422) }
            // The command has read the lists before its first request.
            for list in others.withLock({ $0 }) where unlink(states + "/" + list) == 0 {
                #expect(mkdir(states + "/" + list, 0o700) == 0)
            }
            try reply.respond(201, ["Location": "/files/u/1"])
        }
        let shared = try home.file([1], "shared")
        let last = try home.file([1], "last")
        // Each of these commands leaves a list without its second file.
        for number in 0..<6 {
            _ = try home.run("put", shared, try home.file([1], "rejected-\(number)"), server.url + "/files/")
        }
        let names = try home.lists()
        #expect(names.count == 6)
        others.withLock { $0 = names }
        let run = try home.run("put", shared, last, server.url + "/files/")
        let warnings = run.errors.split(separator: "\n").filter { $0.contains("but this cannot be recorded") }
        #expect(warnings.count == 1 && warnings.allSatisfy { $0.contains(shared) }, "\(run.errors)")
    }

    @Test("After kill -9 of a put with many files, the same command sends no completed file again")
    func many() throws {
        let server = try collection()
        let home = try CommandHome()
        // The entry of each file in the list has some hundred bytes.
        let directory = home.path + "/" + String(repeating: "d", count: 200)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let files = (0..<1800).map { directory + "/\($0)" }
        for file in files { try Data([1]).write(to: URL(filePath: file)) }
        let command = ["put", "--json"] + files + [server.url + "/files/"]
        let run = try home.start(command)
        #expect(server.awaitRequests(1700, within: .seconds(600)))
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        let before = server.requests.count
        let completed = run.output.split(separator: "\n").filter { $0.contains("\"completed\"") }.count
        let again = try home.start(command)
        #expect(try again.process.awaitEnding(within: .seconds(600)) == .exited(0), "\(again.errors)")
        let posts = server.requests.filter { $0.method == "POST" }
        // Only the file in flight is sent twice.
        #expect(posts.count <= files.count + 1 && posts.count >= files.count, "\(before) \(posts.count)")
        #expect(posts.count - min(before, posts.count) <= files.count - completed + 1)
        #expect(try home.lists() == [])
    }

    /// The number of files: `ONWARD_FILES`.
    private static let count = ProcessInfo.processInfo.environment["ONWARD_FILES"].flatMap { Int($0) } ?? 300

    @Test(
        "After kill -9 of a put with many files and the same command, the server has each file once",
        .blocking(limit: .seconds(60 * 60)))
    func killed() throws {
        try withServer { server in
            let home = try CommandHome()
            let files = try (0..<Self.count).map { try home.file(Array("\($0)".utf8), "f\($0)") }
            let command = ["put", "--json"] + files + [server.url("/files/")]
            let run = try home.start(command)
            let isHalf: Bool? = pollUntil(within: .seconds(1200)) {
                server.publishedNames().count >= Self.count / 2 ? true : nil
            }
            #expect(isHalf == true && run.ending == nil, "\(run.errors)")
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            let again = try home.start(command)
            #expect(try again.process.awaitEnding(within: .seconds(1200)) == .exited(0), "\(again.errors)")
            let contents = server.publishedNames().compactMap { server.published($0) }
            #expect(contents.count == Self.count && Set(contents).count == Self.count, "\(contents.count)")
            #expect(try home.lists() == [] && home.stateNames == [])
        }
    }

    @Test("Many files are sent on one connection, and only the first one waits for the missing 104")
    func connections() throws {
        let slow = Monitor(0)
        let server = try ScriptedServer { request, reply in
            let start = ContinuousClock.now
            try reply.discardContent()
            if ContinuousClock.now - start > .milliseconds(600) { slow.withLock { $0 += 1 } }
            try reply.respond(201, ["Location": "/files/x"])
        }
        let home = try CommandHome()
        let files = try (0..<100).map { try home.file([1, 2, 3], "\($0)") }
        let run = try home.start(["put", "--json"] + files + [server.url + "/files/"])
        #expect(try run.process.awaitEnding(within: .seconds(90)) == .exited(0), "\(run.errors)")
        #expect(server.connections == 1 && server.requests.count == 100)
        // On a busy machine a few more requests may wait.
        #expect((1...20).contains(slow.withLock { $0 }))
    }

    /// A server that responds to the first request, and to the others when `count` requests have arrived.
    private func resumable(waitingFor count: Int) throws -> ScriptedServer {
        let arrived = Monitor(0)
        return try ScriptedServer.announcing { number, reply in
            arrived.withLock { $0 += 1 }
            arrived.notifyAll()
            if number > 1 { _ = arrived.wait(until: Deadline(in: .seconds(30)).nanoseconds) { $0 >= count ? () : nil } }
            try reply.respondCreated(number)
        }
    }

    @Test("Up to 64 small files are sent at the same time, after the server has announced that it can resume")
    func simultaneous() throws {
        let server = try resumable(waitingFor: 65)
        let home = try CommandHome()
        let files = try (0..<100).map { try home.file([UInt8($0)], "\($0)") }
        let run = try home.run(["put", "--json"] + files + [server.url + "/files/"])
        try run.expect(0)
        #expect(server.requests.count == 100)
        // The script of the first request may still run after its client has got the response.
        #expect((64...65).contains(server.maxConcurrentScripts), "\(server.maxConcurrentScripts)")
        // A file may start before the connection of the file that has just ended is free again.
        #expect((64..<100).contains(server.connections), "\(server.connections)")
        #expect(Set(try self.files(run, "completed")) == Set(files))
        let events = try run.objects()
        #expect(events.allSatisfy { files.contains($0.text("file") ?? "") })
        #expect(home.stateNames == [])
        #expect(try home.lists() == [])
    }

    @Test("--jobs sets how many files are sent at the same time, even if the server cannot resume")
    func jobs() throws {
        let arrived = Monitor(0)
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            arrived.withLock { $0 += 1 }
            arrived.notifyAll()
            _ = arrived.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 >= 3 ? () : nil }
            try reply.respond(201, ["Location": "/files/x"])
        }
        let home = try CommandHome()
        let files = try (0..<20).map { try home.file([UInt8($0)], "\($0)") }
        try home.run(["put", "--jobs", "3"] + files + [server.url + "/files/"]).expect(0)
        // The script of a request may still run after its client has got the response.
        #expect((3...5).contains(server.maxConcurrentScripts), "\(server.maxConcurrentScripts)")
        #expect(server.requests.count == 20)
    }

    @Test("--limit-rate limits the rate of the command: one file is sent at a time")
    func limited() throws {
        let server = try resumable(waitingFor: 0)
        let home = try CommandHome()
        let files = try (0..<10).map { try home.file([UInt8($0)], "\($0)") }
        try home.run(["put", "--limit-rate", "10M"] + files + [server.url + "/files/"]).expect(0)
        #expect(server.maxConcurrentScripts == 1 && server.connections == 1)
    }

    @Test("After kill -9 of a put with several files, status lists the uploads that had begun, and cancel deletes one")
    func begun() throws {
        let server = try resumable(waitingFor: 100)
        let home = try CommandHome()
        let files = try (0..<3).map { try home.file([UInt8($0)], "\($0)") }
        let command = ["put"] + files + [server.url + "/files/"]
        let run = try home.start(command)
        #expect(eventually { server.requests.filter(\.isComplete).count == 3 })
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        // The state of so short an upload is only in the list.
        #expect(home.stateNames == [])
        let status = try home.run("status", "--json")
        try status.expect(0)
        #expect(Set(try status.objects().compactMap { $0.text("file") }) == Set(files[1...]))
        #expect(home.stateNames.count == 2)
        let name = String(try #require(home.stateNames.first).dropLast(".state".count))
        try home.run("cancel", name).expect(0)
        #expect(server.requests.contains { $0.method == "DELETE" && $0.target.hasPrefix("/u/") })
        #expect(home.stateNames.count == 1)
        #expect(try home.lists() == [])
        // A state that was removed is not restored.
        #expect(try home.run("status", "--json").objects().count == 1)
    }

    /// The numbers of the operations at which the command is killed: every sixth one, or all of them with
    /// `ONWARD_KILLS=all` (`make test-kills`).
    private static let operations = stride(
        from: 1, to: 2000, by: ProcessInfo.processInfo.environment["ONWARD_KILLS"] == "all" ? 1 : 6)

    @Test(
        "A put of several files is killed at each operation on a file, and the same command sends each file once",
        .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
    func fileOperations() throws {
        try withServer { server in
            for number in Self.operations {
                let home = try CommandHome()
                let files = try (0..<4).map { try home.file(Array("\($0)".utf8), "f\($0)") }
                let command = ["put"] + files + [server.url("/files/kill-\(number)/")]
                let operations = try FileOperations(below: home.path, log: home.path + "-operations")
                defer { unlink(operations.log) }
                let killed = try home.start(command, environment: operations.environment(killAt: number))
                let ending = try killed.process.awaitEnding()
                let moment = "operation \(number), \(operations.operations().suffix(1))"
                func contents() -> [[UInt8]] {
                    server.publishedNames().filter { $0.hasPrefix("kill-\(number)/") }
                        .compactMap { server.published($0) }
                }
                // A command that has removed its list is complete: the same command would send all files again.
                let isComplete = try contents().count == 4 && home.lists() == []
                if !isComplete { try home.run(command).expect(0) }
                let sent = contents()
                #expect(sent.count == 4 && Set(sent).count == 4, "\(moment): \(sent.count)")
                #expect(home.stateNames == [], "\(moment)")
                #expect(try home.lists() == [], "\(moment)")
                if ending == .exited(0) {
                    #expect(number > 20)
                    return
                }
            }
            Issue.record("the command has more than 2000 operations")
        }
    }

    @Test("resume of several transfers uses one connection and names the file in each message")
    func resumed() throws {
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            let fields: Fields = [ScriptedUpload.version.0: ScriptedUpload.version.1, "Upload-Complete": "?1"]
            if request.method == "PUT" {
                try reply.interim(104, fields.merging(["Location": "/u" + request.target, "Upload-Complete": "?0"]))
                return reply.reset()
            }
            if request.method == "HEAD" { return try reply.respond(503) }
            try reply.respond(204, fields)
        }
        let home = try CommandHome()
        for name in ["a", "b", "c"] {
            try home.run("put", "--retries", "0", try home.file([1, 2, 3], name), server.url + "/" + name).expect(75)
        }
        #expect(home.stateNames.count == 3)
        let before = server.connections
        let run = try home.run("resume", "--retries", "0", "--quiet")
        try run.expect(75)
        #expect(server.connections == before + 1)
        for name in ["a", "b", "c"] { #expect(run.errors.contains("onward resume: \(name): "), "\(run.errors)") }
    }

    @Test("The lock of a file is released before the next file starts")
    func released() throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "HEAD" { return try reply.respond(503) }
            if request.method == "DELETE" { return reply.stall() }
            if request.fields["Content-Disposition"]?.contains("b.bin") == true {
                let fields = Fields([ScriptedUpload.version, ("Location", "/u/b"), ("Upload-Complete", "?0")])
                try reply.interim(104, fields)
                return reply.reset()
            }
            try reply.discardContent()
            try reply.respond(201)
        }
        let home = try CommandHome()
        let (first, second) = (try home.file([1], "a.bin"), try home.file([2], "b.bin"))
        try home.run("put", "--retries", "0", second, server.url + "/files/").expect(75)
        // The server does not respond to the deletion of the earlier upload of b.bin.
        let run = try home.start("put", "--restart", first, second, server.url + "/files/")
        #expect(eventually { server.requests.contains { $0.method == "DELETE" } })
        let locks = try FileManager.default.contentsOfDirectory(atPath: home.states).filter { $0.hasSuffix(".lock") }
        #expect(locks.count == 1 && locks.allSatisfy { $0.hasPrefix("b.bin") }, "\(locks)")
        run.process.kill(SIGKILL)
    }

    @Test("A command that sent no file leaves no list")
    func nothingSent() throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(403)
        }
        let home = try CommandHome()
        let files = try ["a", "b"].map { try home.file([1], $0) }
        let run = try home.run(["put"] + files + [server.url + "/files/"])
        try run.expect(77)
        #expect(try home.lists() == [])
        for name in ["a", "b"] { #expect(run.errors.contains("onward put: \(name): The server"), "\(run.errors)") }
    }
}
