import ConformanceKit
import FoundationEssentials
import Glibc
import Testing

@Suite("Stored bytes that are changed without the server", .blocking)
struct LostStateTests {
    enum Loss: CaseIterable, CustomTestStringConvertible {
        case oneByte, everything, file

        var testDescription: String { "\(self)" }
    }

    /// The path of the file with the bytes of the only unfinished upload.
    private func bytes(_ server: ServerProcess) throws -> String {
        #expect(server.unfinished.count == 1)
        return server.root + "/uploads/" + (try #require(server.unfinished.keys.first))
    }

    private func expectGone(
        _ response: Response, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect([404, 410].contains(response.status), "\(response)", sourceLocation: sourceLocation)
        #expect(response.offset == nil, sourceLocation: sourceLocation)
        #expect(response.complete != true, sourceLocation: sourceLocation)
    }

    @Test(
        "OFF-15 OFF-09: an upload that lost acknowledged bytes is gone; it never continues at a smaller offset",
        arguments: Loss.allCases, [true, false])
    func loss(_ kind: Loss, headFirst: Bool) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<100_000), length: 200_000)
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 100_000)
            try server.crash()
            let path = try bytes(server)
            switch kind {
            case .oneByte: #expect(truncate(path, 99_999) == 0)
            case .everything: #expect(truncate(path, 0) == 0)
            case .file: #expect(unlink(path) == 0)
            }
            try server.restart()
            let head = Request.retrieval(.v8, location)
            let append = Request.append(.v8, location, at: 100_000, complete: false, .bytes([1]))
            let shorter = Request.append(.v8, location, at: 99_999, complete: false, .bytes([1]))
            for request in headFirst ? [head, append, shorter, head] : [append, shorter, head] {
                expectGone(try server.exchange(request))
            }
            // The upload stays gone after another restart, and its bytes are removed.
            try server.restart()
            expectGone(try server.exchange(head))
            #expect(server.unfinished.isEmpty)
            #expect(server.published("file.bin") == nil)
            // Other uploads still work.
            #expect(try server.exchange(.creation(complete: true, .bytes([1, 2]))).status == 201)
        }
    }

    @Test("OFF-15: bytes after the last acknowledged byte do not count after a crash")
    func surplus() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<100_000))
            try server.crash()
            let path = try bytes(server)
            let handle = try #require(fopen(path, "ae"))
            fputs(String(repeating: "garbage", count: 10_000), handle)
            fclose(handle)
            try server.restart()
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 100_000)
            let last = try server.exchange(
                .append(.v8, location, at: 100_000, complete: true, .bytes(BytePool.repeated(100_000..<101_000))))
            #expect(last.status == 201)
            #expect(server.published("file.bin") == BytePool.repeated(0..<101_000))
        }
    }

    @Test("OFF-15: an upload that loses bytes while the server runs ends with an error, and publishes no shorter file")
    func lossWhileRunning() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<100_000))
            #expect(unlink(try bytes(server)) == 0)
            let last = try server.exchange(
                .append(.v8, location, at: 100_000, complete: true, .bytes(BytePool.repeated(100_000..<101_000))))
            #expect(!last.isSuccessful, "\(last)")
            #expect(server.published("file.bin") == nil)
            #expect(try server.exchange(.get("/files/file.bin")).status == 404)
        }
    }

    @Test("If an upload has lost bytes, the log names the upload by its hash", arguments: [true, false])
    func lossIsLogged(whileRunning: Bool) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<100_000), length: 200_000)
            let head = Request.retrieval(.v8, location)
            #expect(try server.exchange(head).offset == 100_000)
            if !whileRunning { try server.crash() }
            #expect(truncate(try bytes(server), 50_000) == 0)
            if !whileRunning { try server.restart() }
            expectGone(try server.exchange(head))
            let line = try server.process.awaitErrorOutput { text in
                text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                    .first { $0.contains("error: ") && $0.contains("acknowledged") }.map(String.init)
            }
            // The access log has the same hash.
            let word = String(try #require(line.firstMatch(of: /upload:[0-9a-f]{8}/)).output)
            try server.awaitLog("/uploads/" + word)
            #expect(!server.log.contains(location.split(separator: "/").last ?? "?"))
        }
    }
}
