import Foundation
import Glibc
import Testing

/// The messages of `onward cancel` and `--restart` if the server does not have the upload, or denies access to it.
@Suite("Commands: cancel of uploads that the server does not have or denies", .blocking)
struct CancelTests {
    private static let tokens = "anna token-of-anna-0001\nbob token-of-bob-000001\n"

    /// A server with the users anna and bob, a home directory with both tokens, and the state of an upload of anna.
    private func interrupted() throws -> (fixture: TokenFixture, home: CommandHome, state: String) {
        let fixture = try TokenFixture(Self.tokens)
        let home = try CommandHome()
        for (name, token) in [("anna", "token-of-anna-0001"), ("bob", "token-of-bob-000001")] {
            _ = try home.file(Array("\(token)\n".utf8), name)
        }
        try interrupt(home, fixture.server.url("/files/a.bin"), ["--token-file", home.path + "/anna"])
        return (fixture, home, String(try #require(home.stateNames.first).dropLast(".state".count)))
    }

    private func interrupt(_ home: CommandHome, _ url: String, _ options: [String] = []) throws {
        let file = try home.file(Payload.bytes(4_000_000))
        let run = try home.start(["put", "--json", "--limit-rate", "1M"] + options + [file, url])
        _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
        run.process.kill(SIGINT)
        try run.expect(75)
    }

    @Test(
        "cancel with credentials of another user keeps the state, names the credentials to use and ends with 77",
        arguments: ["--token-file", "--header"])
    func otherCredentials(_ option: String) throws {
        let (fixture, home, state) = try interrupted()
        let value = option == "--header" ? "Authorization: Bearer token-of-bob-000001" : home.path + "/bob"
        let refused = try home.run("cancel", option, value, state)
        try refused.expect(77)
        #expect(refused.errors.contains("The state was kept") && refused.errors.contains(home.path + "/anna"))
        #expect(!refused.errors.contains("deleted") && !refused.errors.contains("token-of"))
        #expect(home.stateNames == [state + ".state"])
        #expect(!fixture.server.unfinished.isEmpty)
        let done = try home.run("cancel", state)
        try done.expect(0)
        #expect(done.errors.contains("the upload is deleted on the server"))
        #expect(home.stateNames == [] && fixture.server.unfinished.isEmpty)
    }

    @Test(
        "resume and put with other credentials keep the state, and with the right credentials the upload continues",
        arguments: [false, true])
    func resumed(byPut: Bool) throws {
        let (fixture, home, state) = try interrupted()
        let put = [home.path + "/big.bin", fixture.server.url("/files/a.bin")]
        let refused = try home.run(
            (byPut ? ["put"] : ["resume"]) + ["--token-file", home.path + "/bob"] + (byPut ? put : [state]))
        try refused.expect(77)
        #expect(refused.errors.contains("The state was kept") && refused.errors.contains(home.path + "/anna"))
        #expect(home.stateNames == [state + ".state"])
        let done = try home.run("resume", "--json", state)
        try done.expect(0)
        #expect(try done.objects().contains { $0.name == "resumed" && ($0.number("at") ?? 0) > 200_000 })
        expectSame(fixture.server.published("a.bin") ?? [], Payload.bytes(4_000_000))
        #expect(home.stateNames == [])
    }

    @Test("cancel with another token file keeps the state of an upload with --header, and ends with 77")
    func unknownCredentials() throws {
        let (fixture, home, state) = try interrupted()
        try home.run("cancel", state).expect(0)
        let url = fixture.server.url("/files/b.bin")
        try interrupt(home, url, ["--header", "Authorization: Bearer token-of-anna-0001"])
        let other = String(try #require(home.stateNames.first).dropLast(".state".count))
        try home.run("cancel", "--token-file", home.path + "/bob", other).expect(77)
        #expect(home.stateNames.count == 1)
        try home.run("cancel", "--token-file", home.path + "/anna", other).expect(0)
        #expect(fixture.server.unfinished.isEmpty)
    }

    @Test(
        "cancel of an upload that is gone reports that the server does not have it, and not that it was deleted",
        arguments: [404, 410])
    func gone(_ status: Int) throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "DELETE" { return try reply.respond(status) }
            try reply.interim(104, ["Location": "/uploads/1", "Upload-Draft-Interop-Version": "8"])
            try reply.discardContent()
        }
        let home = try CommandHome()
        try interrupt(home, server.url + "/files/a")
        let run = try home.run("cancel", String(try #require(home.stateNames.first).dropLast(".state".count)))
        try run.expect(0)
        #expect(run.errors.contains("Canceled the upload") && run.errors.contains("has no such upload"))
        #expect(!run.errors.contains("deleted"))
        #expect(home.stateNames == [])
    }

    @Test("--restart with other credentials reports that the earlier upload stays on the server")
    func restart() throws {
        let (fixture, home, _) = try interrupted()
        let run = try home.run(
            "put", "--restart", "--token-file", home.path + "/bob", home.path + "/big.bin",
            fixture.server.url("/files/a.bin"))
        try run.expect(0)
        #expect(run.errors.contains("could not be deleted") && run.errors.contains(home.path + "/anna"))
        #expect(fixture.server.unfinished.count == 1)
    }
}
