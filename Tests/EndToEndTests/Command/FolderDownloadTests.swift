import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite("Command: get -r", .blocking)
struct FolderDownloadTests {
    private let files: [String: [UInt8]] = [
        "a": [1, 2, 3], "sub/empty": [], "sub/deeper/big.bin": Payload.bytes(400_000), "sub/näme #1%2f?": [4],
        "..%2f": [5],
    ]

    /// Writes published files into the data directory of a server.
    private func publish(_ server: ServerProcess, _ files: [String: [UInt8]]) throws {
        for (path, bytes) in files {
            try server.makeDirectories("x/" + path.split(separator: "/").dropLast().joined(separator: "/"))
            try server.place(bytes, as: "x/" + path)
        }
    }

    private func content(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map { Array($0) } }

    @Test("All files and empty folders are received, and a second run receives only what has changed")
    func twice() throws {
        try withServer { server in
            let home = try CommandHome()
            try publish(server, files)
            try server.makeDirectories("x/nothing/in/it")
            let root = home.path + "/copy"
            let command = ["get", "--json", "-r", server.url("/files/x/"), root]
            let first = try home.run(command)
            try first.expect(0)
            #expect(try first.completed(below: root) == files.keys.sorted())
            for (path, bytes) in files { #expect(content(root + "/" + path) == bytes, "\(path)") }
            #expect(FilePath(root + "/nothing/in/it").isDirectory)
            let second = try home.run(command)
            try second.expect(0)
            #expect(try second.completed(below: root) == files.keys.map { $0 + " unchanged" }.sorted())
            // Another file of the same size, probably in the same second.
            try server.place([3, 2, 1], as: "x/a")
            let third = try home.run(command)
            try third.expect(0)
            #expect(try third.completed(below: root).filter { !$0.hasSuffix(" unchanged") } == ["a"])
            #expect(content(root + "/a") == [3, 2, 1])
            try Data([3, 3, 3]).write(to: URL(filePath: root + "/a"))
            try home.run(command).expect(0)
            #expect(content(root + "/a") == [3, 2, 1])
            #expect(home.stateNames == [])
        }
    }

    @Test("A file that was modified long ago keeps its time, and is then unchanged without another request")
    func times() throws {
        try withServer { server in
            let home = try CommandHome()
            try publish(server, ["a": [1], "big.bin": Payload.bytes(400_000)])
            for name in ["a", "big.bin"] { try server.setModified("x/" + name, to: 1_700_000_000, nanoseconds: 5) }
            let before = try server.metrics().requests
            let root = home.path + "/copy"
            let command = ["get", "--json", "-r", server.url("/files/x/"), root]
            try home.run(command).expect(0)
            for name in ["a", "big.bin"] {
                #expect(try FilePath(root + "/" + name).status().modified.seconds == 1_700_000_000)
            }
            let again = try home.run(command)
            #expect(try again.completed(below: root) == ["a unchanged", "big.bin unchanged"])
            let metrics = try server.metrics { $0.requests - before >= 4 }
            #expect(metrics.requests - before == 4 && !metrics.values.keys.contains { $0.contains("method=\"HEAD\"") })
        }
    }

    @Test("The list of a folder has several pages")
    func pages() throws {
        try withServer { server in
            let home = try CommandHome()
            let count = 2500
            try publish(server, Dictionary(uniqueKeysWithValues: (0..<count).map { ("f\($0)", Array("\($0)".utf8)) }))
            let root = home.path + "/copy"
            try home.run("get", "-r", server.url("/files/x/"), root).expect(0)
            let names = try FileManager.default.contentsOfDirectory(atPath: root)
            #expect(names.count == count && names.allSatisfy { content(root + "/" + $0) == Array($0.dropFirst().utf8) })
        }
    }

    @Test("After kill -9 the same command receives the remaining files, and resumes a large one")
    func killed() throws {
        try withServer { server in
            let home = try CommandHome()
            let big = Payload.bytes(4_000_000)
            try publish(server, ["big.bin": big, "sub/a": [1]])
            let root = home.path + "/copy"
            let command = ["get", "--json", "-r", server.url("/files/x/"), root]
            let run = try home.start(command + ["--limit-rate", "1M"])
            _ = try run.awaitEvent("progress") { ($0.number("received") ?? 0) > 1_500_000 }
            run.process.kill(SIGKILL)
            _ = try run.process.awaitEnding()
            let again = try home.run(command)
            try again.expect(0)
            #expect(try again.objects().contains { $0.name == "resumed" && ($0.number("at") ?? 0) > 0 })
            #expect(content(root + "/big.bin") == big && content(root + "/sub/a") == [1])
            #expect(home.stateNames == [])
            #expect(Set(try FileManager.default.subpathsOfDirectory(atPath: root)) == ["big.bin", "sub", "sub/a"])
        }
    }

    @Test(
        "Ctrl-C ends the command with 75, a second run ends with 75, and the same command receives the remaining files")
    func stopped() throws {
        let isOpen = Monitor(false)
        let site = try Site(["a": "1", "b": "2"]) { request, reply in
            guard request.target == "/x/b", !isOpen.withLock({ $0 }) else { return false }
            reply.stall()
            return true
        }
        let home = try CommandHome()
        let command = ["get", "--json", "-r", site.url, home.path + "/copy"]
        let run = try home.start(command)
        #expect(site.server.awaitRequests(3))
        let second = try home.run(command)
        try second.expect(75)
        #expect(try second.objects().last?.text("code") == "in-use")
        run.process.kill(SIGINT)
        try run.expect(75)
        isOpen.withLock { $0 = true }
        try home.run(command).expect(0)
        #expect(content(home.path + "/copy/b") == Array("2".utf8))
    }

    @Test("A page that is not a list in JSON is an error that names the reason")
    func html() throws {
        let server = try ScriptedServer { _, reply in
            try reply.respond(200, ["Content-Type": "text/html"], "<a href=\"a\">a</a>")
        }
        let home = try CommandHome()
        let run = try home.run("get", "-r", server.url + "/", home.path + "/copy", "--json")
        try run.expect(69)
        #expect(try run.objects().map { $0.text("code") } == ["listing-unusable"])
        #expect(run.errors.contains("text/html"), "\(run.errors)")
    }

    @Test(
        "The status of a folder that does not exist, or must not be read, is that of a file; DIR is not created",
        arguments: [(404, 69), (403, 77)] as [(Int, Int32)])
    func refused(statuses: (Int, Int32)) throws {
        let server = try ScriptedServer { _, reply in try reply.respond(statuses.0) }
        let home = try CommandHome()
        let run = try home.run("get", "-r", server.url + "/none/", home.path + "/copy")
        try run.expect(statuses.1)
        #expect(run.errors.contains("onward get: \(server.url)/none/: The server does not list"), "\(run.errors)")
        #expect(!FilePath(home.path + "/copy").isDirectory)
    }

    @Test("If the server is overloaded, the command tries again; a file that is gone does not stop the others")
    func unavailable() throws {
        let refused = Monitor<Set<String>>([])
        let site = try Site(["a": "1", "b": "2", "c": "3"]) { request, reply in
            if request.target == "/x/b" {
                try reply.respond(404)
                return true
            }
            guard refused.withLock({ $0.insert(request.target).inserted }) else { return false }
            try reply.respond(503)
            return true
        }
        let home = try CommandHome()
        try home.run("get", "-r", site.url, home.path + "/copy").expect(69)
        #expect(content(home.path + "/copy/a") == [0x31] && content(home.path + "/copy/c") == [0x33])
    }
}

/// A server with one folder of files at `/x/`, whose list a test chooses.
final class Site: Sendable {
    let server: ScriptedServer
    var url: String { server.url + "/x/" }

    /// - Parameters:
    ///   - files: the content of the files, by their names.
    ///   - entries: the list; `nil`: that of `files`.
    ///   - fields: the fields of the list.
    ///   - script: handles a request; returns whether it has responded.
    init(
        _ files: [String: String], entries: String? = nil, fields: Fields = [:],
        script: @escaping @Sendable (ReceivedRequest, Reply) throws -> Bool = { _, _ in false }
    ) throws {
        let list = files.sorted { $0.key < $1.key }.map { name, content in
            #"{"name":"\#(name)","size":\#(content.utf8.count),"type":"file"}"#
        }
        let text = entries ?? "[\(list.joined(separator: ","))]"
        server = try ScriptedServer { request, reply in
            if try script(request, reply) { return }
            if request.target == "/x/" { return try reply.respond(200, fields, text) }
            let name = String(request.target.dropFirst("/x/".count)).removingPercentEncoding ?? ""
            guard let content = files[name] else { return try reply.respond(404) }
            try reply.respond(200, ["ETag": "\"1\""], content)
        }
    }
}

/// Servers that try to write outside the directory, or to get credentials for another server.
@Suite("Command: get -r from a hostile server", .blocking)
struct HostileFolderTests {
    private func content(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    /// All files in the home of a command except its output and its states.
    private func written(_ home: CommandHome) throws -> Set<String> {
        Set(
            try FileManager.default.subpathsOfDirectory(atPath: home.path).filter {
                !$0.hasPrefix("output-") && !$0.hasPrefix("state")
            })
    }

    @Test(
        "A name that leads out of the directory is reported, and the other files are received",
        arguments: ["../x", "a/b", "/tmp/onward-hostile", "..", ".", "", "../../.ssh/authorized_keys", "a\\u0000b"],
        ["file", "directory"])
    func names(name: String, type: String) throws {
        let entries = #"[{"name":"\#(name)","size":1,"type":"\#(type)"},{"name":"good","size":1,"type":"file"}]"#
        let site = try Site(["good": "1"], entries: entries) { request, reply in
            guard !request.target.hasSuffix("/"), request.target != "/x/good" else { return false }
            try reply.respond(200, [:], "!")
            return true
        }
        let home = try CommandHome()
        let run = try home.run("get", "--json", "-r", site.url, home.path + "/copy")
        try run.expect(69)
        #expect(try written(home) == ["copy", "copy/good"])
        #expect(site.server.requests.map(\.target) == ["/x/", "/x/good"])
        #expect(try run.objects().contains { $0.text("code") == "name-unusable" })
        #expect(!FileManager.default.fileExists(atPath: "/tmp/onward-hostile"))
    }

    @Test("Names that only look like paths are those of files in the directory")
    func escapedNames() throws {
        let names = ["..%2fx", "%2e%2e", "back\\\\slash", "...", "~", "-rf"]
        let entries = names.map { #"{"name":"\#($0)","size":1,"type":"file"}"# }.joined(separator: ",")
        let site = try Site([:], entries: "[\(entries)]") { request, reply in
            guard request.target != "/x/" else { return false }
            try reply.respond(200, [:], "1")
            return true
        }
        let home = try CommandHome()
        try home.run("get", "-r", site.url, home.path + "/copy").expect(0)
        let expected = names.map { "copy/" + $0.replacing("\\\\", with: "\\") }
        #expect(try written(home) == Set(["copy"] + expected))
    }

    @Test("A symbolic link to a directory is not followed: nothing is written behind it", arguments: [1, 300_000])
    func directoryLink(size: Int) throws {
        let home = try CommandHome()
        let (root, outside) = (home.path + "/copy", home.path + "/outside")
        for path in [root, outside] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        symlink("../outside", root + "/sub")
        let bytes = String(repeating: "1", count: size)
        let entries = #"[{"name":"sub","type":"directory"},{"name":"good","size":\#(size),"type":"file"}]"#
        let site = try Site(["good": bytes], entries: entries) { request, reply in
            if request.target == "/x/sub/" {
                try reply.respond(200, [:], #"[{"name":"evil","size":\#(size),"type":"file"}]"#)
                return true
            }
            guard request.target == "/x/sub/evil" else { return false }
            try reply.respond(200, ["ETag": "\"1\""], bytes)
            return true
        }
        let run = try home.run("get", "-r", site.url, root)
        try run.expect(74)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == [])
        #expect(content(root + "/good") == bytes)
        #expect(run.errors.contains("sub: The directory cannot be written"), "\(run.errors)")
    }

    @Test("A symbolic link that appears while a large file is requested is not followed")
    func lateLink() throws {
        let home = try CommandHome()
        let (root, outside) = (home.path + "/copy", home.path + "/outside")
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
        let bytes = String(repeating: "1", count: 300_000)
        let site = try Site([:], entries: #"[{"name":"sub","type":"directory"}]"#) { request, reply in
            if request.target == "/x/sub/" {
                // The directory exists now.
                rename(root + "/sub", root + "/moved")
                symlink("../outside", root + "/sub")
                try reply.respond(200, [:], #"[{"name":"evil","size":300000,"type":"file"}]"#)
                return true
            }
            guard request.target == "/x/sub/evil" else { return false }
            try reply.respond(200, ["ETag": "\"1\""], bytes)
            return true
        }
        try home.run("get", "-r", site.url, root).expect(74)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == [])
    }

    @Test("A symbolic link with the name of a file is replaced: its target does not change", arguments: [1, 300_000])
    func fileLink(size: Int) throws {
        let home = try CommandHome()
        let root = home.path + "/copy"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let target = try home.file(Array("outside".utf8), "target")
        symlink(target, root + "/a")
        symlink(home.path + "/missing", root + "/b")
        let bytes = String(repeating: "1", count: size)
        let site = try Site(["a": bytes, "b": bytes])
        try home.run("get", "-r", site.url, root).expect(0)
        #expect(content(target) == "outside" && content(root + "/a") == bytes && content(root + "/b") == bytes)
        #expect(try written(home) == ["target", "copy", "copy/a", "copy/b"])
    }

    @Test("Neither a URL in the list nor a redirection sends the token to another server")
    func otherOrigin() throws {
        let other = try ScriptedServer { _, reply in try reply.respond(200, ["ETag": "\"1\""], "1") }
        let entries = #"""
            [{"name":"a","size":1,"type":"file","url":"\#(other.url)/a"},
            {"name":"b","size":1,"type":"file","url":"//other/b"},{"name":"c","size":1,"type":"file"}]
            """#
        let site = try Site(["a": "1", "b": "1"], entries: entries) { request, reply in
            guard request.target == "/x/c" else { return false }
            try reply.respond(302, ["Location": other.url + "/c"])
            return true
        }
        let home = try CommandHome()
        let token = try home.file(Array("secret-token".utf8), "token")
        try home.run("get", "-r", site.url, home.path + "/copy", "--token-file", token).expect(0)
        #expect(content(home.path + "/copy/c") == "1" && content(home.path + "/copy/a") == "1")
        #expect(site.server.requests.allSatisfy { $0.fields["Authorization"] == "Bearer secret-token" })
        #expect(other.requests.map(\.target) == ["/c"])
        #expect(other.requests.allSatisfy { !$0.fields.contains("Authorization") })
    }

    @Test("A list that continues at another server is not followed")
    func otherPage() throws {
        let other = try ScriptedServer { _, reply in try reply.respond(200, [:], "[]") }
        let site = try Site(["a": "1"], fields: ["Link": "<\(other.url)/x/?after=a>; rel=\"next\""])
        let home = try CommandHome()
        let token = try home.file(Array("secret-token".utf8), "token")
        try home.run("get", "-r", site.url, home.path + "/copy", "--token-file", token).expect(69)
        #expect(other.requests.isEmpty)
    }

    @Test("A list that redirects to another server is not followed")
    func redirectedList() throws {
        let other = try ScriptedServer { _, reply in try reply.respond(200, [:], "[]") }
        let site = try Site([:]) { _, reply in
            try reply.respond(302, ["Location": other.url + "/x/"])
            return true
        }
        let home = try CommandHome()
        try home.run("get", "-r", site.url, home.path + "/copy").expect(69)
        #expect(other.requests.isEmpty)
    }

    @Test("Folders that are nested without end do not stop the command")
    func endless() throws {
        let server = try ScriptedServer { request, reply in
            try reply.respond(200, [:], #"[{"name":"d","type":"directory"}]"#)
        }
        let home = try CommandHome()
        let run = try home.run("get", "--json", "-r", server.url + "/", home.path + "/copy")
        try run.expect(69)
        #expect(try run.objects().last?.text("code") == "name-unusable")
    }
}
