import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite("Command: put -r", .blocking)
struct FolderUploadTests {
    /// Creates a folder with these files in a home.
    private func folder(_ home: CommandHome, _ files: [String: [UInt8]], _ name: String = "folder") throws -> String {
        let root = home.path + "/" + name
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for (path, bytes) in files {
            let file = URL(filePath: root + "/" + path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: file)
        }
        return root
    }

    private func tables(_ home: CommandHome) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: home.states)) ?? []).filter { $0.hasSuffix(".sent") }
    }

    private let files: [String: [UInt8]] = [
        "a": [1, 2, 3], "sub/empty": [], "sub/deeper/big.bin": Payload.bytes(400_000), "sub/näme #1%2f?": [4],
        ".hidden": [5],
    ]

    @Test("All files are sent to the same paths, and a second run sends only what has changed")
    func twice() throws {
        try withServer { server in
            let home = try CommandHome()
            let root = try folder(home, files)
            let command = ["put", "--json", "-r", root, server.url("/files/x/")]
            let first = try home.run(command)
            try first.expect(0)
            #expect(try first.completed(below: root) == files.keys.sorted())
            for (path, bytes) in files { #expect(server.published("x/" + path) == bytes, "\(path)") }
            let second = try home.run(command)
            try second.expect(0)
            #expect(try second.completed(below: root) == files.keys.map { $0 + " unchanged" }.sorted())
            // The size and the time stay the same.
            let time = timespec(tv_sec: 1_700_000_000, tv_nsec: 0)
            #expect(utimensat(AT_FDCWD, root + "/a", [time, time], 0) == 0)
            try home.run(command).expect(0)
            try Data([3, 2, 1]).write(to: URL(filePath: root + "/a"))
            #expect(utimensat(AT_FDCWD, root + "/a", [time, time], 0) == 0)
            let third = try home.run(command)
            try third.expect(0)
            #expect(try third.completed(below: root).filter { !$0.hasSuffix(" unchanged") } == ["a"])
            #expect(server.published("x/a") == [3, 2, 1])
            #expect(home.stateNames == [] && tables(home) == [])
        }
    }

    @Test("The head and the content of a small file are sent with one system call")
    func systemCalls() throws {
        try withServer { server in
            let home = try CommandHome()
            let size = 10_000
            let names = (0..<20).map { "\($0)" }
            let root = try folder(home, Dictionary(uniqueKeysWithValues: names.map { ($0, Payload.bytes(size)) }))
            let log = home.path + "/calls"
            let run = ProgramRun(
                "/usr/bin/strace",
                arguments: [
                    "-f", "-qq", "-e", "trace=sendto", "-s", "4", "-o", log, try ExecutableLocation.onward(), "put",
                    "--quiet",
                    "-r", root, server.url("/files/x/"),
                ],
                variables: [("XDG_STATE_HOME", home.path + "/state")], timeout: .seconds(120)
            ).run()
            #expect(run.outcome == .ended(.exited(0)), "\(run.summary)")
            let calls = textOfFile(log)
                .split(separator: "\n")
            // sendto(9, "PUT "..., 10154, …
            let sizes = calls.filter { $0.contains("\"PUT ") }.compactMap { Int($0.split(separator: ", ")[2]) }
            #expect(sizes.count == names.count && sizes.allSatisfy { $0 > size }, "\(sizes)")
            for name in names { #expect(server.published("x/" + name) == Payload.bytes(size)) }
        }
    }

    @Test("A person gets a summary, and no line for each file")
    func summary() throws {
        try withServer { server in
            let home = try CommandHome()
            let root = try folder(home, files)
            let run = try home.run("put", "-r", root + "/", server.url("/files/x/"))
            try run.expect(0)
            #expect(run.errors.contains("Sent 5 files (400 kB in "), "\(run.errors)")
            #expect(!run.errors.contains("big.bin"), "\(run.errors)")
            let again = try home.run("put", "-r", root, server.url("/files/x/"))
            #expect(again.errors.contains("Sent 0 files (0 B in ") && again.errors.contains("; 5 unchanged."))
        }
    }

    @Test("Symbolic links are not followed: neither the file nor the folder behind one is sent")
    func links() throws {
        try withServer { server in
            let home = try CommandHome()
            let secret = try folder(home, ["secret": [9]], "outside")
            let root = try folder(home, ["a": [1]])
            symlink(secret, root + "/folder-link")
            symlink(secret + "/secret", root + "/file-link")
            let run = try home.run("put", "-r", root, server.url("/files/x/"))
            try run.expect(0)
            #expect(Set(server.publishedNames()) == ["x", "x/a"])
            for name in ["folder-link", "file-link"] {
                #expect(run.errors.contains("\(name) is left out: a symbolic link is not followed"), "\(run.errors)")
            }
        }
    }

    @Test("Names that the server refuses are reported with their reason, and the other files are sent")
    func names() throws {
        try withServer { server in
            let home = try CommandHome()
            let root = try folder(home, ["a": [1], "back\\slash": [2], "z": [3]])
            let directory = try FileDescriptor.open(root, [.readOnly, .directory])
            _ = try directory.open(at: FilePath([0x66, 0xFF]), [.writeOnly, .create])
            let run = try home.run("put", "--json", "-r", root, server.url("/files/"))
            try run.expect(69)
            #expect(Set(server.publishedNames()) == ["a", "z"])
            let failed = try run.objects().filter { $0.name == "failed" }
            #expect(
                failed.count == 2 && failed.allSatisfy { $0.text("code") == "refused" && $0.number("status") == 400 })
            #expect(run.errors.contains(#"onward put: f\xFF: The server rejected the content (400)."#), "\(run.errors)")
        }
    }

    @Test("A folder that does not exist, or is a file, has status 66; a URL without / has status 64")
    func wrong() throws {
        let home = try CommandHome()
        let file = try home.file([1])
        try home.run("put", "-r", home.path + "/missing", "http://127.0.0.1:1/").expect(66)
        try home.run("put", "-r", file, "http://127.0.0.1:1/").expect(66)
        try home.run("put", "-r", home.path, "http://127.0.0.1:1/x").expect(64)
        try home.run("put", "-r", home.path, home.path, "http://127.0.0.1:1/").expect(64)
    }

    @Test(
        "A file that cannot be read is reported, and the other files are sent",
        .enabled(if: geteuid() != 0, "runs as root"))
    func unreadable() throws {
        try withServer { server in
            let home = try CommandHome()
            let root = try folder(home, ["a": [1], "b": [2], "sub/c": [3]])
            chmod(root + "/a", 0)
            chmod(root + "/sub", 0)
            defer { chmod(root + "/sub", 0o700) }
            let run = try home.run("put", "-r", root, server.url("/files/"))
            try run.expect(66)
            #expect(server.publishedNames() == ["b"])
        }
    }

    @Test("A file that changes while it is sent has status 65, and the other files are sent")
    func changed() throws {
        try withServer { server in
            let home = try CommandHome()
            let root = try folder(home, ["a": [1], "big.bin": Payload.bytes(3_000_000)])
            let run = try home.start("put", "--json", "-r", root, server.url("/files/"), "--limit-rate", "1M")
            _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > 100_000 }
            let file = try FileHandle(forUpdating: URL(filePath: root + "/big.bin"))
            try file.write(contentsOf: Data([7, 7, 7]))
            try file.close()
            try run.expect(65)
            #expect(server.published("a") == [1] && server.published("big.bin") == nil)
        }
    }

    @Test("After kill -9 the same command sends the remaining files, and resumes a large one")
    func killed() throws {
        try withServer { server in
            let home = try CommandHome()
            let big = Payload.bytes(4_000_000)
            let root = try folder(home, ["big.bin": big])
            let command = ["put", "--json", "-r", root, server.url("/files/x/")]
            let run = try home.start(command + ["--limit-rate", "1M"])
            _ = try run.awaitEvent("progress") { ($0.number("acknowledged") ?? 0) > 500_000 }
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            #expect(try home.run("status", "--json").objects().count == 1)
            let again = try home.run(command)
            try again.expect(0)
            #expect(try again.objects().contains { $0.name == "resumed" && ($0.number("at") ?? 0) > 0 })
            #expect(server.published("x/big.bin") == big)
            #expect(home.stateNames == [] && tables(home) == [])
        }
    }

    /// A server that stores what is put, and that neither sends digests nor lists folders.
    /// - Parameter isReadable: whether it responds to HEAD and GET with other statuses than 403.
    private func simpleServer(
        isReadable: Bool, _ stored: Monitor<[String: [UInt8]]>, puts: Counter
    ) throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            switch request.method {
            case "PUT":
                let bytes = try reply.readContent()
                puts.next()
                stored.withLock { $0[request.target] = bytes }
                try reply.respond(201)
            case "HEAD" where isReadable:
                let bytes = stored.withLock { $0[request.target] }
                try reply.respond(bytes == nil ? 404 : 200, ["Content-Length": "\(bytes?.count ?? 0)"])
            default: try reply.respond(403)
            }
        }
    }

    @Test(
        "After kill -9, the same command sends no completed file again, whatever the server states about its files",
        arguments: [true, false])
    func killedBetween(isReadable: Bool) throws {
        let stored = Monitor<[String: [UInt8]]>([:])
        let puts = Counter()
        let server = try simpleServer(isReadable: isReadable, stored, puts: puts)
        let home = try CommandHome()
        let count = 3000
        let root = try folder(
            home, Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0 % 7)/f\($0)", Array("\($0)".utf8)) }))
        let command = ["put", "-r", root, server.url + "/files/", "--jobs", "4"]
        let run = try home.start(command)
        let isHalf: Bool? = pollUntil(within: .seconds(120)) { puts.value >= count / 2 ? true : nil }
        #expect(isHalf == true && run.ending == nil, "\(run.errors)")
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        #expect(tables(home).count == 1)
        try home.run(command).expect(0)
        #expect(stored.withLock { $0.count } == count)
        #expect(Set(stored.withLock { $0.values.map { String(decoding: $0, as: UTF8.self) } }).count == count)
        // Only the files in flight are sent twice.
        #expect(puts.value <= count + 4, "\(puts.value)")
        #expect(tables(home) == [])
    }

    @Test("A second run of the same command ends with status 75")
    func secondRun() throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "PUT" { return reply.stall() }
            try reply.respond(404)
        }
        let home = try CommandHome()
        let root = try folder(home, ["a": [1]])
        let command = ["put", "--json", "-r", root, server.url + "/files/"]
        let run = try home.start(command)
        #expect(server.awaitRequests(2))
        let second = try home.run(command)
        try second.expect(75)
        #expect(try second.objects().last?.text("code") == "in-use")
        run.process.kill(SIGTERM)
        try run.expect(75)
        #expect(try run.objects().last?.text("code") == "paused")
    }

    @Test("Files are sent at the same time, at most as many as --jobs permits", arguments: [nil, 3] as [Int?])
    func simultaneous(jobs: Int?) throws {
        let arrived = Monitor(0)
        let count = jobs ?? 64
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try reply.respond(404) }
            try reply.discardContent()
            arrived.withLock { $0 += 1 }
            arrived.notifyAll()
            _ = arrived.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 >= count ? () : nil }
            try reply.respond(201)
        }
        let home = try CommandHome()
        let root = try folder(home, Dictionary(uniqueKeysWithValues: (0..<100).map { ("f\($0)", [1]) }))
        try home.run(["put", "-r", root, server.url + "/"] + (jobs.map { ["--jobs", "\($0)"] } ?? [])).expect(0)
        // The script of a request may still run after its client has got the response.
        #expect((count...count + 2).contains(server.maxConcurrentScripts), "\(server.maxConcurrentScripts)")
        #expect(server.requests.count == 101)
    }

    @Test("If the server is overloaded, the command tries again; if it cannot be reached, the status is 75")
    func unavailable() throws {
        let refused = Monitor<Set<String>>([])
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            guard request.method == "PUT" else { return try reply.respond(404) }
            let isFirst = refused.withLock { $0.insert(request.target).inserted }
            try reply.respond(isFirst ? 503 : 201)
        }
        let home = try CommandHome()
        let root = try folder(home, ["a": [1], "b": [2]])
        try home.run("put", "-r", root, server.url + "/").expect(0)
        let run = try home.run("put", "-r", root, "http://127.0.0.1:1/", "--retries", "0")
        try run.expect(75)
        #expect(run.errors.contains("could not be reached"), "\(run.errors)")
    }

    @Test("--restart sends all files again, and --digest sends their SHA-256")
    func restart() throws {
        let server = try ScriptedServer { request, reply in
            try reply.discardContent()
            try reply.respond(request.method == "PUT" ? 204 : 404)
        }
        let home = try CommandHome()
        let root = try folder(home, ["a": [1, 2, 3]])
        try home.run("put", "-r", root, server.url + "/", "--restart", "--digest").expect(0)
        #expect(server.requests.map(\.method) == ["PUT"])
        #expect(
            server.requests[0].fields["Repr-Digest"] == "sha-256=:A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShogEc+4E=:")
    }

    @Test("The memory does not depend on the number of files", .blocking(limit: .seconds(600)))
    func memory() throws {
        func peak(_ count: Int) throws -> Int {
            let server = try ScriptedServer { request, reply in
                try reply.discardContent()
                try reply.respond(request.method == "PUT" ? 201 : 404)
            }
            let home = try CommandHome()
            let root = try folder(home, [:])
            for number in 0..<count { _ = FileManager.default.createFile(atPath: root + "/\(number)", contents: nil) }
            let run = try home.start("put", "-r", root, server.url + "/", "--quiet")
            var peak = 0
            while run.ending == nil {
                peak = max(peak, run.process.peakResidentBytes() ?? 0)
                SystemClock.pause(nanoseconds: 20_000_000)
            }
            try run.expect(0)
            return peak
        }
        let (few, many) = (try peak(500), try peak(20_000))
        #expect(few > 1 << 20 && many < few + 6 << 20, "\(few) bytes for 500 files, \(many) for 20,000")
    }
}
