import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

/// File names are bytes: they need not be UTF-8, and two names are the same only if all their bytes are equal.
@Suite("Commands: file names of any bytes", .blocking)
struct FileNameTests {
    /// Bytes that are not UTF-8; a first character that combines with the slash before it; the two normal forms of one
    /// text; control sequences of a terminal.
    static let names: [FilePath] = [
        FilePath("gr".utf8 + [0xF6, 0xDF] + "er.bin".utf8), FilePath([0xFF]), "\u{301}x.bin", "\u{200D}x", "\u{FE0F}x",
        "caf\u{E9}.bin", "cafe\u{301}.bin", "a\r\nb", "line\nfeed\n", "\u{1B}[2Jx", "a\\x41b", "%F6",
    ]

    private func make(_ home: CommandHome, _ name: FilePath, _ bytes: [UInt8]) throws -> FilePath {
        let path = FilePath(home.path).appending(name)
        let file = try FileDescriptor.open(path, [.writeOnly, .create, .exclusive])
        try file.write(bytes, at: 0)
        return path
    }

    private func content(_ path: FilePath) throws -> [UInt8] {
        try FileDescriptor.open(path, [.readOnly]).content(atMost: 64 << 20)
    }

    /// The path in an event: the bytes in `fileBytes` if the event has this member, or else the text in `file`.
    private func file(_ event: CommandRun.Event?) -> FilePath? {
        if let text = event?.text("fileBytes") { return Data(base64Encoded: text).map { FilePath($0) } }
        return event?.text("file").map { FilePath($0) }
    }

    /// Expects no control character but the line feeds at the ends of lines.
    private func expectSafe(_ run: CommandRun, lines: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
        let controls = run.errors.unicodeScalars.filter { $0.properties.generalCategory == .control && $0 != "\n" }
        #expect(controls.isEmpty, "\(run.errors)", sourceLocation: sourceLocation)
        guard let lines else { return }
        #expect(run.errors.utf8.count { $0 == 0x0A } == lines, "\(run.errors)", sourceLocation: sourceLocation)
    }

    @Test("put sends the file with exactly this name, and reports the name", arguments: names)
    func put(name: FilePath) throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(1000)
            let path = try make(home, name, bytes)
            let run = try home.run(bytes: "put", "--json", path, FilePath(server.url("/files/a.bin")))
            try run.expect(0)
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(file(try run.objects().last) == path.absolute)
            try home.run(bytes: "put", path, FilePath(server.url("/files/a.bin"))).expect(0)
            let upload = try home.run(bytes: "put", path, FilePath(server.url("/files/b.bin")))
            expectSafe(upload, lines: 2)
        }
    }

    @Test("get writes the file with exactly this name, and creates no other file", arguments: names)
    func get(name: FilePath) throws {
        let server = try ScriptedServer { request, reply in
            try ScriptedFile(bytes: Payload.bytes(5000)).serve(request, reply)
        }
        let home = try CommandHome()
        let directory = FilePath(home.path).appending("d")
        try FileDescriptor.makeDirectory(directory)
        let run = try home.run(
            bytes: "get", "--json", FilePath(server.url + "/a"), "-o", directory.appending(name))
        try run.expect(0)
        #expect(try entries(directory) == [name])
        expectSame(try content(directory.appending(name)), Payload.bytes(5000))
        #expect(file(try run.objects().last) == directory.absolute?.appending(name))
    }

    /// The names of all entries of a directory, as bytes.
    private func entries(_ directory: FilePath) throws -> Set<FilePath> {
        let stream = try #require(directory.withCString { opendir($0) })
        defer { closedir(stream) }
        var names: Set<FilePath> = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { FilePath($0.prefix { $0 != 0 }) }
            if name != ".", name != ".." { names.insert(name) }
        }
        return names
    }

    @Test("Two normal forms of one text are two files, even in one command")
    func normalForms() throws {
        try withServer { server in
            let home = try CommandHome()
            let paths = try Self.names.map { try make(home, $0, $0.bytes) }
            let run = try home.start(bytes: ["put", "--json"] + paths + [FilePath(server.url("/files/"))])
            try run.expect(0)
            let completed = try run.objects().filter { $0.name == "completed" }
            #expect(Set(completed.map { file($0) }) == Set(paths.map(\.absolute)))
            let published = server.publishedNames().compactMap { server.published($0) }
            #expect(Set(published) == Set(Self.names.map(\.bytes)))
        }
    }

    @Test("A name that is not UTF-8 is sent with its bytes percent-encoded")
    func disposition() throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let home = try CommandHome()
        try home.run(bytes: "put", try make(home, Self.names[0], [1]), FilePath(server.url + "/box/")).expect(0)
        let value = try #require(server.requests.first { $0.method == "POST" }?.fields["Content-Disposition"])
        #expect(value == "inline; filename=\"gr_F6_DFer.bin\"; filename*=UTF-8''gr%25F6%25DFer.bin")
    }

    @Test(
        "get keeps the file name of the URL: bytes that are not UTF-8 stay percent-encoded",
        arguments: [
            ("/files/gr%F6%DFer.bin", "gr%F6%DFer.bin"), ("/files/%CC%81x", "\u{301}x"),
            ("/files/cafe%CC%81", "cafe\u{301}"),
            ("/files/caf%C3%A9", "caf\u{E9}"), ("/files/\u{301}x", "\u{301}x"), ("/files/cafe\u{301}", "cafe\u{301}"),
        ] as [(String, FilePath)])
    func nameOfURL(target: String, name: FilePath) throws {
        let server = try ScriptedServer { try ScriptedFile(bytes: [1, 2, 3]).serve($0, $1) }
        let home = try CommandHome()
        let directory = FilePath(home.path).appending("d")
        try FileDescriptor.makeDirectory(directory)
        try home.run(bytes: "get", FilePath(server.url + target), "-o", directory).expect(0)
        #expect(try entries(directory) == [name])
    }

    @Test("Bytes of a URL's path that are not ASCII are sent percent-encoded, without a normalization")
    func target() throws {
        let server = try ScriptedServer { try ScriptedFile(bytes: [1]).serve($0, $1) }
        let home = try CommandHome()
        let url = FilePath(server.url + "/e\u{301}/").bytes + [0xF6]
        try home.run(bytes: "get", FilePath(url), "-o", FilePath(home.path + "/x")).expect(0)
        #expect(server.requests.map(\.target) == ["/e%CC%81/%F6"])
    }

    @Test(
        "An interrupted upload of a file with any name is continued by put and by resume, and removed by cancel",
        arguments: names)
    func resumed(name: FilePath) throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(3_000_000)
            let path = try make(home, name, bytes)
            let command: [FilePath] = ["put", "--json", path, FilePath(server.url("/files/a.bin"))]
            func interrupt() throws {
                let run = try home.start(bytes: command + ["--limit-rate", "1M"])
                _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
                run.process.kill(SIGTERM)
                try run.expect(75)
            }
            try interrupt()
            let list = try home.run("status", "--json")
            #expect(file(try list.objects().first) == path.absolute)
            expectSafe(try home.run("status"))
            try home.run(bytes: "resume", FilePath(try #require(try list.objects().first?.text("state")))).expect(0)
            expectSame(server.published("a.bin") ?? [], bytes)
            try interrupt()
            let again = try home.start(bytes: command)
            try again.expect(0)
            #expect(try again.objects().contains { $0.name == "resumed" })
            try interrupt()
            let shown = FilePath(home.states).appending(FilePath(try #require(home.stateNames.first)))
            try home.run(bytes: "cancel", shown).expect(0)
            #expect(home.stateNames == [])
        }
    }

    @Test(
        "An interrupted download to a file with any name is continued by the same command",
        arguments: names)
    func resumedDownload(name: FilePath) throws {
        try withServer { server in
            let bytes = Payload.bytes(3_000_000)
            try server.place(bytes, as: "a.bin")
            let home = try CommandHome()
            let target = FilePath(home.path).appending(name)
            let command: [FilePath] = ["get", "--json", FilePath(server.url("/files/a.bin")), "-o", target]
            let run = try home.start(bytes: command + ["--limit-rate", "1M"])
            _ = try run.awaitEvent("progress") { ($0.number("received") ?? 0) > 1_500_000 }
            run.process.kill(SIGTERM)
            try run.expect(75)
            expectSafe(try home.run("status"))
            let again = try home.start(bytes: command)
            try again.expect(0)
            #expect(try again.objects().contains { $0.name == "resumed" && ($0.number("at") ?? 0) > 0 })
            expectSame(try content(target), bytes)
        }
    }

    @Test(
        "An interrupted replacement is kept together with the replaced bytes, for every name of the file",
        arguments: names)
    func replacement(name: FilePath) throws {
        let file = ScriptedFile(bytes: Payload.bytes(400_000), fields: ["ETag": "\"one\"", "Content-Type": "a/b"])
        let other = ScriptedFile(
            bytes: Payload.bytes(700_000, seed: 2),
            fields: ["ETag": "\"two\"", "Content-Type": "a/b", "Content-Encoding": "gzip"])
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 1: try file.serve(request, reply, cut: 200_000)
            case 2: try other.serve(request, reply, cut: 300_000)
            case 3: reply.stall()
            default: try other.serve(request, reply)
            }
        }
        let home = try CommandHome()
        let directory = FilePath(home.path).appending("d")
        try FileDescriptor.makeDirectory(directory)
        let command: [FilePath] = ["get", FilePath(server.url + "/a"), "-o", directory.appending(name)]
        let run = try home.start(bytes: command)
        #expect(server.awaitRequests(3))
        run.process.kill(SIGTERM)
        try run.expect(75)
        #expect(try entries(directory).count == 2)
        let again = try home.start(bytes: command)
        try again.expect(0)
        expectSafe(again)
        #expect(
            again.errors.contains(" is stored as the server sent it, with the content coding gzip"), "\(again.errors)")
        #expect(server.requests.last?.fields["Range"] == "bytes=300000-")
        #expect(server.requests.last?.fields["If-Range"] == "\"two\"")
        #expect(try entries(directory) == [name])
        expectSame(try content(directory.appending(name)), other.bytes)
    }

    @Test("Options with a file name accept any bytes", arguments: names)
    func options(name: FilePath) throws {
        try withServer { server in
            let home = try CommandHome()
            let token = try make(home, name, Array("s3cret\n".utf8))
            let file = try make(home, "file", Payload.bytes(3_000_000))
            let state = FilePath(home.path).appending("s" + name)
            let url = FilePath(server.url("/files/a.bin"))
            let command: [FilePath] = ["put", "--json", "--token-file", token, "--state=" + state, file, url]
            let run = try home.start(bytes: command + ["--limit-rate", "1M"])
            _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 300_000 }
            run.process.kill(SIGTERM)
            try run.expect(75)
            #expect(try content(state).count > 100)
            expectSafe(run)
            try home.run(bytes: "resume", state).expect(0)
            #expect(throws: Errno.noSuchFile) { try content(state) }
            let authority = try home.run(bytes: "put", "--cacert", token + "x", file, url)
            try authority.expect(74)
            expectSafe(authority, lines: 1)
        }
    }

    @Test("Error messages with any file name contain no control sequence", arguments: names)
    func refused(name: FilePath) throws {
        let home = try CommandHome()
        let path = FilePath(home.path).appending(name)
        let missing = try home.run(bytes: "put", path, "http://127.0.0.1:1/x")
        try missing.expect(66)
        expectSafe(missing, lines: 1)
        let words: [[FilePath]] = [
            ["put", path], ["put", path, path, "http://h/"], ["get", path],
            ["put", "--token-file", path + "/x", "a", "b"],
            ["get", "-o", path + "/x", "http://127.0.0.1:1/x"], ["resume", path], ["cancel", name], ["--" + name],
            ["put", "--" + name], ["put", "--header", name, "a", "http://h/"], ["get", "http://h/x", name],
        ]
        for words in words {
            let run = try home.start(bytes: words)
            #expect([.exited(64), .exited(66), .exited(74)].contains(try run.process.awaitEnding()))
            expectSafe(run)
        }
    }
}
