import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Transfers by common programs. Each test is skipped if its program is not installed, because a build does not require
/// these programs (Debian: curl, aria2, wget).
@Suite("Existing clients", .blocking)
struct ToolTests {
    private static let content = Payload.bytes(6 << 20)

    private func content(of path: String) -> [UInt8] {
        FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? []
    }

    /// Waits until a growing file has at least `bytes` bytes.
    private func awaitPart(_ path: String, atLeast bytes: Int = 200_000) throws {
        let found: Bool? = pollUntil(within: .seconds(60)) { fileSize(path) >= bytes ? true : nil }
        guard found != nil else { throw WireFailure.timedOut("\(path) has \(fileSize(path)) bytes") }
    }

    @Test(
        "curl -T uploads a file plainly; -r and -C - download parts of it",
        .enabled(if: Tool.curl.isInstalled, "curl is not installed"))
    func curl() throws {
        try withServer { server in
            let source = server.directory.path + "/source.bin"
            let copy = server.directory.path + "/copy.bin"
            try Data(Self.content).write(to: URL(filePath: source))
            // curl adds the file's name to the URL of a collection.
            #expect(try Tool.curl.run(["-f", "-T", source, server.url("/files/up/")]) == .exited(0))
            #expect(areEqual(server.published("up/source.bin") ?? [], Self.content))
            #expect(try Tool.curl.run(["-f", "-T", source, server.url("/files/f.bin")]) == .exited(0))
            #expect(areEqual(server.published("f.bin") ?? [], Self.content))

            for (range, expected) in [
                ("0-9", 0..<10), ("1000000-1000999", 1_000_000..<1_001_000),
                ("-5", Self.content.count - 5..<Self.content.count),
            ] {
                #expect(try Tool.curl.run(["-f", "-r", range, server.url("/files/f.bin")], output: copy) == .exited(0))
                #expect(content(of: copy) == Array(Self.content[expected]))
            }
            #expect(unlink(copy) == 0)
            // This file is much larger than what curl receives before it checks its rate.
            let large = try LargeFile(server.directory.path + "/large.bin", size: 64 << 20, seed: 3)
            #expect(try Tool.curl.run(["-f", "-T", large.path, server.url("/files/large.bin")]) == .exited(0))
            let cut = try Tool.curl.start(["-f", "--limit-rate", "100K", "-o", copy, server.url("/files/large.bin")])
            try awaitPart(copy)
            cut.kill(SIGKILL)
            _ = try cut.awaitEnding()
            let first = fileSize(copy)
            #expect(first < Int(large.size))
            #expect(try Tool.curl.run(["-f", "-C", "-", server.url("/files/large.bin")], output: copy) == .exited(0))
            #expect(try LargeFile.digest(copy) == LargeFile.digest(large.path))
            // Only the remaining bytes were sent.
            try server.awaitLog("GET /files/large.bin 206 in=0 out=\(Int(large.size) - first)")
            // The file is complete: the server responds with 416, and curl does not append the content of the response.
            #expect(try Tool.curl.run(["-C", "-", server.url("/files/large.bin")], output: copy) == .exited(0))
            #expect(try LargeFile.digest(copy) == LargeFile.digest(large.path))
        }
    }

    @Test(
        "curl -C N -T sends a part of a file, and the server refuses it and replaces nothing",
        .enabled(if: Tool.curl.isInstalled, "curl is not installed"))
    func curlAppending() throws {
        try withServer { server in
            let source = server.directory.path + "/source.bin"
            try Data("0123456789".utf8).write(to: URL(filePath: source))
            #expect(try Tool.curl.run(["-f", "-T", source, server.url("/files/f.bin")]) == .exited(0))
            #expect(try Tool.curl.run(["-f", "-C", "5", "-T", source, server.url("/files/f.bin")]) == .exited(22))
            #expect(server.published("f.bin") == Array("0123456789".utf8))
        }
    }

    @Test(
        "RNG-08: curl downloads several ranges, and does not download an unchanged file again",
        .enabled(if: Tool.curl.isInstalled, "curl is not installed"))
    func curlConditions() throws {
        try withServer { server in
            try server.publish(Array("0123456789".utf8), as: "f.txt")
            let copy = server.directory.path + "/copy.txt"
            let url = server.url("/files/f.txt")
            #expect(try Tool.curl.run(["-f", "-r", "0-0,4-5", url], output: copy) == .exited(0))
            let text = String(decoding: content(of: copy), as: UTF8.self)
            #expect(text.contains("Content-Range: bytes 0-0/10\r\n\r\n0\r\n"))
            #expect(text.contains("Content-Range: bytes 4-5/10\r\n\r\n45\r\n"))
            let tags = server.directory.path + "/tag"
            let save = ["-f", "--etag-save", tags, url]
            #expect(try Tool.curl.run(save, output: copy) == .exited(0))
            #expect(content(of: copy) == Array("0123456789".utf8))
            #expect(unlink(copy) == 0)
            let compare = ["-f", "--etag-compare", tags, url]
            #expect(try Tool.curl.run(compare, output: copy) == .exited(0))
            #expect(content(of: copy).isEmpty, "304: the file is not downloaded again")
        }
    }

    @Test(
        "H11-25: curl uploads resumably, is killed, and sends the remaining content from the offset of HEAD",
        .enabled(if: Tool.curl.isInstalled, "curl is not installed"))
    func curlResuming() throws {
        try withServer { server in
            let source = server.directory.path + "/source.bin"
            let head = server.directory.path + "/head.txt"
            try Data(Self.content).write(to: URL(filePath: source))
            let fields = ["-H", "Upload-Complete: ?1", "-H", "Upload-Draft-Interop-Version: 8"]
            let cut = try Tool.curl.start(
                ["-T", source, "--limit-rate", "2M", "-D", head] + fields + [server.url("/files/f.bin")])
            let location: String? = pollUntil(within: .seconds(60)) {
                let text = String(decoding: content(of: head), as: UTF8.self)
                return text.split(separator: "\r\n").first { $0.hasPrefix("Location: ") }.map {
                    String($0.dropFirst(10))
                }
            }
            let upload = try #require(location)
            #expect(upload.hasPrefix("/uploads/"))
            #expect(eventually { server.unfinished.values.contains { $0 > 500_000 } })
            cut.kill(SIGKILL)
            _ = try cut.awaitEnding()
            let offset = try #require(try server.exchange(.retrieval(.v8, upload)).offset)
            #expect(offset > 0 && offset < Self.content.count)
            let remaining = server.directory.path + "/remaining.bin"
            try Data(Self.content[Int(offset)...]).write(to: URL(filePath: remaining))
            let append = [
                "-f", "-X", "PATCH", "-T", remaining, "-H", "Upload-Offset: \(offset)", "-H",
                "Content-Type: application/partial-upload",
            ]
            #expect(try Tool.curl.run(append + fields + [server.url(upload)]) == .exited(0))
            #expect(areEqual(server.published("f.bin") ?? [], Self.content))
        }
    }

    @Test(
        "RNG-03: aria2c downloads over several connections, and continues after a kill and a crash of the server",
        .enabled(if: Tool.aria2c.isInstalled, "aria2c is not installed"))
    func aria2() throws {
        try withServer { server in
            try server.place(Self.content, as: "f.bin")
            let copy = server.directory.path + "/copy.bin"
            let arguments = [
                "-x", "4", "-s", "4", "-k", "1M", "--max-tries=0", "--retry-wait=1", "--auto-save-interval=1",
                "-d", server.directory.path, "-o", "copy.bin", server.url("/files/f.bin"),
            ]
            let cut = try Tool.aria2c.start(["--max-overall-download-limit=1500K"] + arguments)
            try awaitPart(copy)
            cut.kill(SIGINT)
            _ = try cut.awaitEnding()
            #expect(fileSize(copy + ".aria2") > 0, "aria2c has saved which parts are missing")
            let second = try Tool.aria2c.start(["-c", "--max-overall-download-limit=2M"] + arguments)
            _ = try server.process.awaitErrorOutput { log in
                log.split(separator: "\n").filter { $0.contains("GET /files/f.bin 206") }.count >= 4 ? true : nil
            }
            try server.crash()
            try server.restart()
            #expect(try second.awaitEnding(within: .seconds(40)) == .exited(0))
            #expect(areEqual(content(of: copy), Self.content))
            #expect(access(copy + ".aria2", F_OK) != 0)
        }
    }

    @Test("wget -c continues a download that was cut", .enabled(if: Tool.wget.isInstalled, "wget is not installed"))
    func wget() throws {
        try withServer { server in
            try server.place(Self.content, as: "f.bin")
            let copy = server.directory.path + "/copy.bin"
            let cut = try Tool.wget.start(["--limit-rate=1m", "-O", copy, server.url("/files/f.bin")])
            try awaitPart(copy)
            cut.kill(SIGKILL)
            _ = try cut.awaitEnding()
            let first = fileSize(copy)
            #expect(first < Self.content.count)
            #expect(try Tool.wget.run(["-c", "-O", copy, server.url("/files/f.bin")]) == .exited(0))
            #expect(areEqual(content(of: copy), Self.content))
            try server.awaitLog("GET /files/f.bin 206 in=0 out=\(Self.content.count - first)")
            // The same command runs again, although no byte is missing.
            #expect(try Tool.wget.run(["-c", "-O", copy, server.url("/files/f.bin")]) == .exited(0))
            #expect(areEqual(content(of: copy), Self.content))
        }
    }

    @Test("RNG-04 RNG-12: a browser's video element requests the start, aborts, seeks, aborts, and reads the end")
    func video() throws {
        try withServer { server in
            try server.place(Self.content, as: "film.mp4")
            let first = try server.connect(receiveBuffer: 64 << 10)
            let fields = [("Accept", "*/*"), ("Accept-Encoding", "identity;q=1, *;q=0"), ("Sec-Fetch-Dest", "video")]
            try first.send(Request("GET", "/files/film.mp4", fields + [("Range", "bytes=0-")]))
            while first.received.count < 300_000 { _ = try first.receiveMore(until: Deadline(in: .seconds(60))) }
            let text = String(decoding: first.received.prefix(2000), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 206 "))
            #expect(text.contains("Content-Range: bytes 0-\(Self.content.count - 1)/\(Self.content.count)\r\n"))
            #expect(text.contains("Content-Type: video/mp4\r\n"))
            let tag = try #require(text.split(separator: "ETag: ").last?.split(separator: "\r\n").first)
            first.reset()
            // The browser requests the index at the end of the file, then two positions in the middle, each with the
            // validator of the first response.
            for (start, wanted) in [(Self.content.count - 40_000, 40_000), (3_000_001, 200_000), (1_234_567, 100_000)] {
                let connection = try server.connect(receiveBuffer: 64 << 10)
                let range = [("Range", "bytes=\(start)-"), ("If-Range", String(tag))]
                try connection.send(Request("GET", "/files/film.mp4", fields + range))
                while connection.received.count < wanted + 2000,
                    try connection.receiveMore(until: Deadline(in: .seconds(60))) == nil
                {
                    guard let head = connection.received.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
                    if connection.received.count >= head.upperBound + wanted { break }
                }
                let head = try #require(connection.received.firstRange(of: Array("\r\n\r\n".utf8))).upperBound
                #expect(connection.received.starts(with: "HTTP/1.1 206 ".utf8))
                let body = Array(connection.received[head...].prefix(wanted))
                #expect(areEqual(body, Array(Self.content[start..<start + wanted])))
                connection.reset()
            }
            // The server still responds correctly.
            let entire = try server.download("film.mp4", [("Range", "bytes=0-")])
            #expect(areEqual(entire.content, Self.content))
            #expect(
                eventually { server.connectionThreads <= 1 }, "a thread still serves a client that has disconnected")
        }
    }
}

extension ServerProcess {
    /// The number of threads that serve a connection now, of all processes.
    var connectionThreads: Int {
        process.all.reduce(0) { sum, process in
            let tasks = "/proc/\(process.identifier)/task"
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
            return sum
                + threads.count { thread in
                    let name = FileManager.default.contents(atPath: "\(tasks)/\(thread)/comm") ?? Data()
                    return String(decoding: name, as: UTF8.self).hasPrefix("MHD-connection")
                }
        }
    }
}
