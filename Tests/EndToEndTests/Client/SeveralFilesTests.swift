import Foundation
import Glibc
import Testing

@Suite("Command: put of several files, ended by other commands", .blocking, .timeLimit(.minutes(15)))
struct SeveralFilesTests {
    /// The lists of what commands with several files have done.
    private func lists(_ home: CommandHome) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: home.states).filter { $0.hasSuffix(".done") }
    }

    /// Interrupts a command with two files within the second.
    /// - Returns: its words.
    private func interrupt(_ home: CommandHome, _ url: String) throws -> [String] {
        let small = try home.file([1, 2, 3], "small.bin")
        let big = try home.file(Payload.bytes(4_000_000), "big.bin")
        let command = ["put", "--json", small, big, url]
        let run = try home.start(command + ["--limit-rate", "1M"])
        _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
        run.process.kill(SIGTERM)
        try run.expect(75)
        #expect(try lists(home).count == 1)
        return command
    }

    /// The files of which the events of this name tell.
    private func files(_ run: CommandRun, _ event: String) throws -> [String] {
        try run.objects().filter { $0.name == event }.compactMap { $0.text("file") }
    }

    @Test("What ends the last one of them ends the command: later it is a new one", arguments: ["resume", "put"])
    func ended(by what: String) throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            try home.run(what == "put" ? ["put", command[3], command[4]] : ["resume"]).expect(0)
            #expect(try lists(home) == [])
            let again = try home.run(command)
            try again.expect(0)
            #expect(try files(again, "started") == [command[2], command[3]])
            #expect(server.publishedNames().count == 4)
            #expect(try lists(home) == [])
        }
    }

    @Test("After one of them is cancelled the command is a new one")
    func cancelled() throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            try home.run("cancel", String(try #require(home.stateNames.first).dropLast(".state".count))).expect(0)
            #expect(try lists(home) == [])
            let again = try home.run(command)
            try again.expect(0)
            #expect(try files(again, "started") == [command[2], command[3]])
        }
    }

    @Test("What an earlier run has sent is told as that")
    func told() throws {
        try withServer { server in
            let home = try CommandHome()
            let command = try interrupt(home, server.url("/files/"))
            let again = try home.run(command.filter { $0 != "--json" })
            try again.expect(0)
            #expect(again.errors.contains("small.bin was already sent by an earlier run"))
            #expect(!again.errors.contains("Sent small.bin") && again.errors.contains("Sent big.bin"))
            #expect(try lists(home) == [])
        }
    }

    @Test("A command of which nothing could be sent leaves no list")
    func vain() throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardBody()
            try reply.respond(403)
        }
        let home = try CommandHome()
        let files = try ["a", "b"].map { try home.file([1], $0) }
        try home.run(["put"] + files + [server.url + "/files/"]).expect(77)
        #expect(try lists(home) == [])
    }
}
