import Foundation
import Glibc
import Testing

@Suite("Commands: resume, status, cancel", .blocking)
struct StateCommandTests {
    private static let bytes = Payload.bytes(4_000_000)

    /// Creates a file with this name and interrupts its upload.
    private func interrupt(
        _ home: CommandHome, _ url: String, _ name: String = "big.bin", _ options: [String] = []
    ) throws {
        let file = try home.file(Self.bytes, name)
        let run = try home.start(["put", "--json", "--limit-rate", "1M"] + options + [file, url])
        _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
        run.process.kill(SIGINT)
        try run.expect(75)
    }

    @Test("status lists the interrupted transfers, as text and as one JSON object on each line")
    func status() throws {
        try withServer { server in
            let home = try CommandHome()
            #expect(try home.run("status").output == "There are no interrupted transfers.\n")
            #expect(try home.run("status", "--json").output == "")
            try interrupt(home, server.url("/files/a.bin?secret=1"))
            let text = try home.run("status")
            try text.expect(0)
            #expect(text.output.contains("big.bin-") && text.output.contains("4.00 MB") && text.output.contains(" %"))
            #expect(!text.output.contains("secret"))
            let objects = try home.run("status", "--json").objects()
            #expect(objects.count == 1)
            let object = try #require(objects.first)
            #expect(object.text("kind") == "put" && object.text("method") == "PUT")
            #expect(object.text("state").map { $0 + ".state" } == home.stateNames.first)
            #expect(object.number("total") == 4_000_000)
            #expect((object.number("sent") ?? 0) > 0)
            let acknowledged = try #require(object.number("acknowledged"))
            #expect(text.output.contains("\(Int(Double(acknowledged) / 4_000_000 * 100)) %, "))
            #expect(text.output.contains("of 4.00 MB acknowledged"))
            #expect(object.members["active"] as? Bool == false)
            // Only the owner may read the state.
            var attributes = stat()
            stat(home.states + "/" + home.stateNames[0], &attributes)
            #expect(attributes.st_mode & 0o777 == 0o600)
            stat(home.states, &attributes)
            #expect(attributes.st_mode & 0o777 == 0o700)
        }
    }

    @Test("resume continues all interrupted transfers, or the named one")
    func resume() throws {
        try withServer { server in
            let home = try CommandHome()
            for name in ["a", "b", "c"] { try interrupt(home, server.url("/files/\(name)"), name) }
            let one = try #require(home.stateNames.first { $0.hasPrefix("b-") })
            let first = try home.run("resume", "--json", String(one.dropLast(".state".count)))
            try first.expect(0)
            #expect(try first.objects().contains { $0.name == "resumed" })
            #expect(server.publishedNames() == ["b"])
            #expect(home.stateNames.count == 2)
            let remaining = try home.run("resume", "--json")
            try remaining.expect(0)
            #expect(try remaining.objects().filter { $0.name == "completed" }.count == 2)
            for name in ["a", "b", "c"] { expectSame(server.published(name) ?? [], Self.bytes) }
            #expect(home.stateNames == [])
            try home.run("resume").expect(0)
            try home.run("resume", "nothing").expect(66)
        }
    }

    @Test("cancel removes the state, and deletes the upload on the server")
    func cancel() throws {
        try withServer { server in
            let home = try CommandHome()
            try interrupt(home, server.url("/files/a.bin"))
            let state = try #require(home.stateNames.first)
            #expect(!server.unfinished.isEmpty)
            try home.run("cancel", home.states + "/" + state).expect(0)
            #expect(home.stateNames == [])
            try server.awaitLog(" DELETE ")
            #expect(server.unfinished.isEmpty)
            try home.run("cancel", home.states + "/" + state).expect(66)
            try home.run("cancel", "nothing").expect(66)
        }
    }

    @Test("cancel keeps the state and ends with 75 if the server cannot be reached")
    func cancelOffline() throws {
        try withServer { server in
            let home = try CommandHome()
            try interrupt(home, server.url("/files/a.bin"))
            _ = try server.stop()
            let state = String(try #require(home.stateNames.first).dropLast(".state".count))
            try home.run("cancel", state).expect(75)
            #expect(home.stateNames.count == 1)
            try server.restart()
            try home.run("cancel", state).expect(0)
            #expect(home.stateNames == [])
        }
    }

    @Test("cancel keeps the state and ends with 77 if the server forbids the deletion")
    func cancelForbidden() throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "DELETE" { return try reply.respond(403) }
            try reply.interim(
                104,
                [
                    "Location": "/uploads/1", "Upload-Draft-Interop-Version": "8",
                ])
            try reply.discardContent()
        }
        let home = try CommandHome()
        try interrupt(home, server.url + "/files/a")
        let state = String(try #require(home.stateNames.first).dropLast(".state".count))
        let run = try home.run("cancel", state)
        try run.expect(77)
        #expect(run.errors.contains("--token-file"))
        #expect(home.stateNames.count == 1)
    }

    /// A server that announces an upload, sends no final response, and permits a deletion only with a key or a
    /// password.
    private func lockedServer() throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            if request.method == "DELETE" {
                let isAllowed =
                    request.fields["X-Key"] == "1" || request.fields["Authorization"]?.hasPrefix("Basic") == true
                return try reply.respond(isAllowed ? 204 : 403)
            }
            try reply.interim(104, ["Location": "/uploads/1", "Upload-Draft-Interop-Version": "8"])
            try reply.discardContent()
        }
    }

    @Test("cancel sends the fields that --header gives")
    func cancelWithHeader() throws {
        let server = try lockedServer()
        let home = try CommandHome()
        try interrupt(home, server.url + "/files/a")
        let state = String(try #require(home.stateNames.first).dropLast(".state".count))
        try home.run("cancel", state).expect(77)
        try home.run("cancel", "--header", "X-Key: 1", state).expect(0)
        #expect(home.stateNames == [])
    }

    @Test(
        "--restart deletes the earlier upload with the new credentials, and reports an upload that it cannot delete")
    func restartWithCredentials() throws {
        let server = try lockedServer()
        let home = try CommandHome()
        func restart(_ name: String, _ words: String...) throws -> (CommandRun, deletion: ReceivedRequest?) {
            try interrupt(home, server.url + "/files/" + name, name)
            let before = server.requests.count
            let run = try home.start(["put", "--restart", "--limit-rate", "1M", home.path + "/" + name] + words)
            // The deletion precedes the creation.
            #expect(server.awaitRequests(before + 2))
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            return (run, server.requests.dropFirst(before).first { $0.method == "DELETE" })
        }
        let first = try restart("a", "--header", "X-Key: 1", server.url + "/files/a")
        #expect(first.deletion?.fields["X-Key"] == "1")
        #expect(!first.0.errors.contains("could not be deleted"))
        let second = try restart("b", server.url.replacing("http://", with: "http://me:you@") + "/files/b")
        #expect(second.deletion?.fields["Authorization"]?.hasPrefix("Basic ") == true)
        let third = try restart("c", server.url + "/files/c")
        #expect(third.deletion != nil && third.0.errors.contains("could not be deleted"))
    }

    @Test("--state sets the path of the state; resume and cancel find the state by its path")
    func elsewhere() throws {
        try withServer { server in
            let home = try CommandHome()
            let path = home.path + "/mine.onward"
            try interrupt(home, server.url("/files/a.bin"), "a.bin", ["--state", path])
            #expect(home.stateNames == [] && FileManager.default.fileExists(atPath: path))
            try home.run("resume", path).expect(0)
            #expect(!FileManager.default.fileExists(atPath: path))
            expectSame(server.published("a.bin") ?? [], Self.bytes)
            try interrupt(home, server.url("/files/b.bin"), "b.bin", ["--state", path])
            try home.run("put", "--state", path, home.path + "/a.bin", server.url("/files/c.bin")).expect(74)
            try home.run("put", "--state", path, home.path + "/b.bin", server.url("/files/b.bin")).expect(0)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: home.path).filter { $0.hasSuffix(".lock") } == [])
        }
    }

    @Test("A file that is not a state is neither used nor removed")
    func foreign() throws {
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file([1, 2, 3])
            let precious = try home.file(Array("precious".utf8), "precious")
            chmod(precious, 0o600)
            for options in [[], ["--restart"]] {
                try home.run(["put"] + options + ["--state", precious, file, server.url("/files/a")]).expect(74)
            }
            try home.run("resume", precious).expect(74)
            try home.run("cancel", precious).expect(74)
            #expect(FileManager.default.contents(atPath: precious) == Data("precious".utf8))
            #expect(server.published("a") == nil)
        }
    }

    @Test("put ends with 74 if the directory for states cannot be used; with --state it does not need the directory")
    func unusableDirectory() throws {
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file([1, 2, 3])
            let command = ["put", file, server.url("/files/a")]
            let blocked = try home.start(command, environment: ["XDG_STATE_HOME": file])
            try blocked.expect(74)
            #expect(blocked.errors.contains("cannot be used: Not a directory\n"))
            #expect(blocked.errors.contains("--state") && !blocked.errors.contains("must be owned by you"))
            let elsewhere = try home.start(
                command + ["--state", home.path + "/mine"], environment: ["XDG_STATE_HOME": file])
            try elsewhere.expect(0)
            let nowhere = try home.start(
                command + ["--state", home.path + "/none/mine"], environment: ["XDG_STATE_HOME": file])
            try nowhere.expect(74)
            #expect(nowhere.errors.contains(home.path + "/none cannot be used: No such file or directory"))
            mkdir(home.path + "/state", 0o700)
            mkdir(home.states, 0o700)
            chmod(home.states, 0o777)
            let open = try home.run(command)
            try open.expect(74)
            #expect(open.errors.contains("must be owned by you and not writable by others"))
        }
    }

    @Test("status and resume end with 74 if the directory for states cannot be read", arguments: ["status", "resume"])
    func unreadableDirectory(command: String) throws {
        let home = try CommandHome()
        let run = try home.start(command, environment: ["XDG_STATE_HOME": try home.file([1])])
        try run.expect(74)
        #expect(run.errors.contains("/onward cannot be used: Not a directory"), "\(run.errors)")
        #expect(!(run.output + run.errors).contains("no interrupted transfers"))
    }

    @Test("put ends with 69 if the server no longer has the upload; the same command then starts a new upload")
    func gone() throws {
        try withServer { server in
            let home = try CommandHome()
            let url = server.url("/files/a.bin")
            try interrupt(home, url)
            try server.crash()
            if let shared = server.shared {
                try shared.database.query("DELETE FROM onward.upload")
            } else {
                try FileManager.default.removeItem(atPath: server.root)
            }
            try server.restart()
            let run = try home.run("put", "--json", home.path + "/big.bin", url)
            try run.expect(69)
            #expect(try run.objects().last?.text("code") == "gone")
            #expect(home.stateNames == [])
            try home.run("put", home.path + "/big.bin", url).expect(0)
            expectSame(server.published("a.bin") ?? [], Self.bytes)
        }
    }
}
