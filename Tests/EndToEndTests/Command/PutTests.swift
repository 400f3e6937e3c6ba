import Foundation
import Glibc
import Testing

@Suite("Command: put", .blocking)
struct PutTests {
    @Test("A file is uploaded completely, and no file is left in the state directory")
    func completeTransfer() throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(3_000_000)
            let run = try home.run("put", try home.file(bytes), server.url("/files/a.bin"))
            try run.expect(0)
            #expect(run.output == "")
            #expect(run.errors.contains("Sent big.bin: \(server.url("/files/a.bin")) (201; 3.00 MB"))
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(home.stateNames == [])
            #expect(try run.process.awaitEnding() == .exited(0))
        }
    }

    @Test("--json prints one object on each line, with the documented members")
    func json() throws {
        try withServer { server in
            let home = try CommandHome()
            let run = try home.run("put", "--json", try home.file(Payload.bytes(2_000_000)), server.url("/files/a.bin"))
            try run.expect(0)
            let events = try run.objects()
            #expect(events.first?.name == "started" && events.last?.name == "completed")
            let names: Set<String> = ["started", "progress", "interrupted", "resumed", "completed"]
            #expect(events.allSatisfy { names.contains($0.name) })
            for event in events where event.name == "progress" || event.name == "completed" {
                #expect(event.number("sent") != nil && event.number("acknowledged") != nil)
                #expect(event.number("total") == 2_000_000)
            }
            let last = try #require(events.last)
            #expect(last.number("sent") == 2_000_000 && last.number("acknowledged") == 2_000_000)
            #expect(last.number("status") == 201)
            #expect(last.text("location") == server.url("/files/a.bin"))
            let lines = run.output.split(separator: "\n")
            #expect(zip(lines, lines.dropFirst()).allSatisfy { $0 != $1 }, "\(run.output)")
            #expect(events.first?.text("state")?.hasPrefix("big.bin-") == true)
            let plain = try home.run("put", "--json", "--plain", home.path + "/big.bin", server.url("/files/b.bin"))
            try plain.expect(0)
            #expect(try plain.objects().first?.isNull("state") == true)
        }
    }

    @Test("--json has the content of the final response, if it is text of at most 64 KiB")
    func content() throws {
        let home = try CommandHome()
        let file = try home.file([1, 2, 3])
        let large = String(repeating: "x", count: 65_537)
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            switch request.target {
            case "/text": try reply.respond(201, ["Upload-Complete": "?1"], "{\"id\": \"ü\"}\n")
            case "/large": try reply.respond(201, ["Upload-Complete": "?1"], large)
            default: try reply.respond(201, ["Upload-Complete": "?1"])
            }
        }
        for (target, content) in [("/text", "{\"id\": \"ü\"}\n"), ("/large", nil), ("/empty", nil)] {
            let run = try home.run("put", "--json", file, server.url + target)
            try run.expect(0)
            #expect(try run.objects().last?.text("content") == content)
        }
    }

    @Test("CLI-37: the file name is sent in both forms of Content-Disposition, for old and new recipients")
    func disposition() throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let home = try CommandHome()
        try home.run("put", try home.file([1, 2, 3], "größer.bin"), server.url + "/box/").expect(0)
        let value = try #require(server.requests.first { $0.method == "POST" }?.fields["Content-Disposition"])
        #expect(value == "inline; filename=\"gr__er.bin\"; filename*=UTF-8''gr%C3%B6%C3%9Fer.bin")
    }

    @Test("A file for a URL that ends in / is sent by POST, with its name")
    func collection() throws {
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file([1, 2, 3], "größer als \"10\".bin")
            let run = try home.run("put", "--json", file, server.url("/files/"))
            try run.expect(0)
            let location = try #require(try run.objects().last?.text("location"))
            #expect(location.hasPrefix(server.url("/files/")) && location != server.url("/files/"))
            #expect(server.publishedNames().count == 1)
            #expect(server.publishedNames().first?.hasPrefix("größer als") == true)
        }
    }

    @Test("Several files are uploaded to a collection; after a failure the same command sends the missing files")
    func several() throws {
        try withServer { server in
            let home = try CommandHome()
            let files = try ["a", "b", "c"].map { try home.file(Payload.bytes(100_000), $0 + ".bin") }
            try FileManager.default.removeItem(atPath: files[1])
            let command = ["put", "--json"] + files + [server.url("/files/")]
            let first = try home.run(command)
            try first.expect(66)
            #expect(try first.objects().filter { $0.name == "completed" }.count == 2)
            #expect(try first.objects().filter { $0.name == "failed" }.map { $0.text("code") } == ["no-such-source"])
            #expect(server.publishedNames().sorted() == ["a.bin", "c.bin"])
            _ = try home.file(Payload.bytes(100_000), "b.bin")
            let second = try home.run(command)
            try second.expect(0)
            #expect(server.publishedNames().sorted() == ["a.bin", "b.bin", "c.bin"])
            #expect(try second.objects().filter { $0.name == "started" }.map { $0.text("file") } == [files[1]])
            #expect(try second.objects().filter { $0.name == "completed" }.count == 3)
            // All files are complete, so the same command starts new uploads.
            let third = try home.run(command)
            try third.expect(0)
            #expect(server.publishedNames().count == 6)
        }
    }

    @Test("The options of put for fields, method, version, digest and token, --plain and --careful take effect")
    func options() throws {
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            let isComplete = request.fields["Upload-Complete"] != "?0" && request.fields["Upload-Incomplete"] != "?1"
            let fields: [(String, String)] =
                isComplete ? [("Upload-Complete", "?1")] : [("Upload-Complete", "?0"), ("Location", "/uploads/1")]
            try reply.respond(201, .init(fields + [("Upload-Offset", "\(isComplete ? 0 : request.contentCount)")]))
        }
        let home = try CommandHome()
        let file = try home.file(Array("hello".utf8))
        let token = try home.file(Array("s3cret \nrest".utf8), "token")
        let run = try home.run(
            "put", "--header", "X-Extra: yes", "--header", "Content-Type: text/plain", "--method", "PATCH", "--interop",
            "6", "--digest", "--token-file", token, "--verbose", file, server.url + "/x")
        try run.expect(0)
        let request = try #require(server.requests.first)
        #expect(request.method == "PATCH")
        #expect(request.fields["X-Extra"] == "yes" && request.fields["Content-Type"] == "text/plain")
        #expect(request.fields["Upload-Draft-Interop-Version"] == "6")
        #expect(request.fields["Authorization"] == "Bearer s3cret")
        #expect(request.fields["Repr-Digest"] == Array("hello".utf8).digestField())
        #expect(run.errors.contains("> PATCH ") && run.errors.contains("< HTTP/1.1 201 Created"))
        #expect(run.errors.contains("Authorization: (hidden)") && !run.errors.contains("s3cret"))

        try home.run("put", "--plain", file, server.url + "/x").expect(0)
        #expect(server.requests.last?.fields.contains("Upload-Complete") == false)
        try home.run("put", "--careful", file, server.url + "/y").expect(0)
        let careful = server.requests.dropFirst(2)
        #expect(careful.first?.contentCount == 0 && careful.first?.fields["Upload-Complete"] == "?0")
    }

    @Test("A wrong command line ends with 64 and a message that names the mistake; with --json, an event, too")
    func usage() throws {
        let home = try CommandHome()
        let file = try home.file([1])
        let url = "http://127.0.0.1:1/files/a"
        let cases: [(arguments: [String], word: String)] = [
            (["put"], "FILE"), (["put", file], "URL"), (["put", file, "nonsense"], "nonsense"),
            (["put", file, file, url], "ends in /"), (["put", "--nonsense", file, url], "--nonsense"),
            (["put", "-", url], "standard input"),
            (["put", "--state", home.path + "/s", file, home.path + "/x", url + "/"], "--state"),
            (["put", "--token-file", file, file, "http://me:pw@127.0.0.1:1/x"], "--token-file"),
            (["get"], "URL"), (["get", url, "extra"], "extra"), (["get", "http://127.0.0.1:1/"], "-o"),
            (["get", url, "-o"], "value"), (["get", url, "-o", "-"], "standard output"),
            (["get", "--digest", url], "--digest"),
            (["resume", "a", "b"], "'b'"), (["resume", "--restart"], "--restart"), (["status", "x"], "'x'"),
            (["cancel"], "STATE"), (["cancel", "a", "b"], "'b'"),
        ]
        for (arguments, word) in cases {
            let run = try home.run(arguments)
            try run.expect(64)
            #expect(run.errors.contains(word), "\(word) in \(run.errors)")
            #expect(run.errors.hasPrefix("onward \(arguments[0]): "))
            #expect(run.errors.contains("onward \(arguments[0]) --help"))
            #expect(run.output == "")
            let jsonRun = try home.run([arguments[0], "--json"] + arguments.dropFirst())
            try jsonRun.expect(64)
            #expect(try jsonRun.objects().map(\.name) == ["failed"])
            #expect(try jsonRun.objects().first?.text("code") == "usage")
        }
        #expect(!FileManager.default.fileExists(atPath: home.states))
        for command in ["put", "get", "resume", "status", "cancel"] {
            let help = try home.run(command, "--help")
            try help.expect(0)
            #expect(help.output.hasPrefix("usage: onward \(command)"))
            #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
    }

    /// A file that this user cannot read. Root can read almost all files.
    private func unreadableFile(_ home: CommandHome) throws -> String {
        guard geteuid() != 0 else { return "/proc/sys/vm/compact_memory" }
        let file = try home.file([1], "secret")
        chmod(file, 0)
        return file
    }

    @Test("put to an unknown host ends with 69 after three attempts if there is nothing to resume")
    func noHost() throws {
        let home = try CommandHome()
        let run = try home.run("put", "--json", try home.file([1]), "http://no-such-host.invalid/x")
        try run.expect(69)
        let events = try run.objects()
        #expect(events.map(\.name) == ["started", "interrupted", "interrupted", "failed"])
        #expect(events.last?.text("code") == "host-not-found")
        #expect(home.stateNames == [])
    }

    @Test("After a missing file, a rejection, a denial or a failed connection put ends with the documented status")
    func statuses() throws {
        let home = try CommandHome()
        let file = try home.file([1, 2, 3])
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            let status = Int(request.target.dropFirst()) ?? 500
            try reply.respond(status, ["Upload-Complete": "?1"])
        }
        func failure(_ status: Int32, _ code: String, _ arguments: String...) throws {
            let run = try home.run(["put", "--json", "--retries", "1"] + arguments)
            try run.expect(status)
            let last = try #require(try run.objects().last)
            #expect(last.name == (status == 75 ? "interrupted" : "failed"))
            #expect(last.text("code") == code)
            #expect(last.text("message")?.isEmpty == false)
            #expect(!run.errors.isEmpty)
        }
        try failure(66, "no-such-source", home.path + "/missing", server.url + "/201")
        try failure(66, "no-such-source", home.path + "/nowhere/missing", server.url + "/201")
        try failure(66, "no-such-source", home.path, server.url + "/201")
        try failure(66, "source-unavailable", try unreadableFile(home), server.url + "/201")
        try failure(74, "token-file", "--token-file", home.path + "/missing", file, server.url + "/201")
        try failure(64, "token-file", "--token-file", try home.file([0x20, 0x0A], "empty"), file, server.url + "/201")
        try failure(74, "cacert", "--cacert", home.path + "/missing", file, server.url + "/201")
        try failure(74, "cacert", "--cacert", home.path, file, server.url + "/201")
        // The file is not in the format PEM.
        try failure(74, "cacert", "--cacert", file, file, server.url + "/201")
        try failure(74, "cert", "--cert", file, file, server.url + "/201")
        try failure(69, "refused", file, server.url + "/400")
        try failure(69, "precondition-failed", file, server.url + "/412")
        try failure(77, "unauthorized", file, server.url + "/403")
        try failure(75, "cannot-connect", file, "http://127.0.0.1:1/files/x")
        #expect(home.stateNames == [])
        // With --quiet only errors are printed.
        let quiet = try home.run("put", "--quiet", file, server.url + "/201")
        try quiet.expect(0)
        #expect(quiet.errors == "" && quiet.output == "")
    }

    @Test("put --careful to a server that does not support resumable uploads ends with 69 and advice")
    func withoutResumption() throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(201)
        }
        let home = try CommandHome()
        let file = try home.file([1, 2, 3])
        for option in [["--careful"], ["--append-size", "2"]] {
            let run = try home.run(["put", "--json"] + option + [file, server.url + "/x"])
            try run.expect(69)
            #expect(try run.objects().last?.text("code") == "resumption-unsupported")
            #expect(run.errors.contains("without --careful and --append-size"))
        }
        #expect(server.requests.count == 2 && home.stateNames == [])
    }

    @Test("With --retries 2 the third failure without progress ends put with 75")
    func retries() throws {
        let server = try ScriptedServer { _, reply in
            // If content were not read, the end of the connection could overtake the next request.
            try reply.discardContent()
            try reply.respond(503, ["Retry-After": "0"])
        }
        let home = try CommandHome()
        let run = try home.run("put", "--retries", "2", "--json", try home.file([1]), server.url + "/x")
        try run.expect(75)
        #expect(server.requests.count == 3)
        #expect(try run.objects().filter { $0.name == "interrupted" }.count == 3)
    }
}
