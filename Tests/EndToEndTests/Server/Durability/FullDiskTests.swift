import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("A full disk", .blocking, .enabled(if: SmallDisk.isPossible, SmallDisk.requirement))
struct FullDiskTests {
    private static let size = 8 << 20

    /// Runs `body` with a server whose data directory is a file system of 8 MiB.
    private func withSmallDisk(
        _ options: [String] = [], _ body: (ServerProcess) throws -> Void
    ) throws {
        try withServer { server in
            try server.crash()
            try FileManager.default.removeItem(atPath: server.root)
            try FileManager.default.createDirectory(atPath: server.root, withIntermediateDirectories: false)
            let disk = try SmallDisk(on: server.root, "size=\(Self.size)")
            defer {
                try? server.crash()
                disk.unmount()
            }
            try server.restart(options)
            try body(server)
        }
    }

    @Test("an upload whose event cannot be recorded is not acknowledged")
    func fullWhileRecordingEvents() throws {
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try withSmallDisk(endpoint.options()) { server in
            let ballast = try SmallDisk.fill(server.root, leaving: 300_000)
            var acknowledged: Set<String> = []
            for number in 0..<60 {
                let target = "/files/\(number)"
                let status = try server.exchange(Request("PUT", target, [], .bytes([0x61]))).status
                #expect(status == 201 || status == 507)
                if status == 201 { acknowledged.insert(target) }
            }
            #expect(!acknowledged.isEmpty && acknowledged.count < 60)
            try server.crash()
            #expect(unlink(ballast) == 0)
            try endpoint.origin.restart()
            try server.restart()
            let reported = Set(endpoint.awaitAccepted(acknowledged.count).map(\.data.target))
            #expect(reported.isSuperset(of: acknowledged), "\(acknowledged.subtracting(reported))")
            #expect(reported.allSatisfy { server.published(String($0.dropFirst("/files/".count))) == [0x61] })
        }
    }

    @Test(
        "SEC-17 CRE-23 OFF-09: an upload to a full disk gets 507 and a correct offset, and continues after a removal",
        arguments: [false, true])
    func fullWhileReceiving(chunked: Bool) throws {
        try withSmallDisk { server in
            let length = 6_000_000
            let connection = try server.connect()
            let creation = Request.creation(complete: true, chunked ? .openChunks : .declared(Int64(length)))
            try connection.send(creation)
            let location = try #require(try connection.requireInterim().location)
            func send(_ range: Range<Int>) -> Bool {
                let bytes = BytePool.repeated(range)
                let wire = chunked ? Request.chunk(bytes) : bytes
                return connection.sendUntilRefused(wire) == wire.count
            }
            #expect(send(0..<1_000_000))
            let path = try SmallDisk.fill(server.root, leaving: 500_000)
            var sent = 1_000_000
            while sent < length, send(sent..<sent + 100_000) { sent += 100_000 }
            let refusal = try connection.readResponse(to: "PUT")
            #expect(refusal.status == 507)
            #expect(refusal.problem?.code == "insufficient-space")
            #expect(refusal.complete == false)
            let offset = try awaitOffset(server, location, refusal)
            #expect(offset <= sent + 100_000)
            // A creation is refused with the same status.
            let new = try server.exchange(
                .creation(.v8, "PUT", "/files/b", complete: false, length: 7_000_000, .bytes([])))
            #expect(new.status == 507, "\(new), refused at \(offset)")
            #expect(try server.exchange(.get("/healthz")).status == 200)
            #expect(unlink(path) == 0)
            let last = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(BytePool.repeated(offset..<length))))
            #expect(last.status == 201, "\(last)")
            #expect(server.published("file.bin") == BytePool.repeated(0..<length))
        }
    }

    @Test(
        "SEC-17: an upload of unknown length leaves room for the catalog, so that its offset can be stored and reported"
    )
    func room() throws {
        try withSmallDisk(["--min-free", "2M"]) { server in
            let connection = try server.connect()
            try connection.send(.creation(complete: true, .openChunks))
            let location = try #require(try connection.requireInterim().location)
            var sent = 0
            while sent < Self.size,
                connection.sendUntilRefused(Request.chunk(BytePool.repeated(sent..<sent + 50_000))) > 50_000
            {
                sent += 50_000
            }
            let refusal = try connection.readResponse(to: "PUT")
            #expect(refusal.status == 507 && refusal.problem?.code == "insufficient-space")
            let health = try server.exchange(.get("/readyz"))
            #expect(health.status == 503)
            #expect(!String(decoding: health.content, as: UTF8.self).contains("cannot-be-written"))
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204 && (head.offset ?? 0) > 2_000_000, "\(head)")
            try server.crash()
            try server.restart()
            #expect(try server.exchange(.retrieval(.v8, location)).offset == head.offset)
        }
    }

    /// Retrieves the offset. If the disk has no room for the catalog either, makes room first.
    private func awaitOffset(_ server: ServerProcess, _ location: String, _ refusal: Response) throws -> Int {
        var head = try server.exchange(.retrieval(.v8, location))
        if head.status >= 500 {
            print("HEAD on the full disk: \(head)")
            // The server may fail to report an offset, but must not report a wrong one.
            #expect(head.offset == nil)
            #expect(unlink(server.root + "/ballast") == 0)
            #expect(FileManager.default.createFile(atPath: server.root + "/ballast", contents: nil))
            head = try server.exchange(.retrieval(.v8, location))
        }
        #expect(head.status == 204, "\(head)")
        #expect(head.complete == false)
        let offset = try #require(head.offset)
        if let reported = refusal.offset { #expect(reported <= offset) }
        return Int(offset)
    }

    @Test(
        "SEC-17 OFF-10: an offset that was reported before the disk was full is correct after a crash with a full disk")
    func crashOnFullDisk() throws {
        try withSmallDisk { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<2_000_000))
            let path = try SmallDisk.fill(server.root)
            let refusal = try server.exchange(
                .append(.v8, location, at: 2_000_000, complete: true, .bytes(BytePool.repeated(2_000_000..<3_000_000))))
            #expect(refusal.status >= 500)
            #expect(refusal.complete == false)
            if let reported = refusal.offset { #expect((2_000_000...3_000_000).contains(reported)) }
            try server.crash()
            #expect(unlink(path) == 0)
            try server.restart()
            let offset = Int(try #require(try server.exchange(.retrieval(.v8, location)).offset))
            #expect(offset >= max(2_000_000, Int(refusal.offset ?? 0)))
            let last = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(BytePool.repeated(offset..<3_000_000))))
            #expect(last.status == 201)
            #expect(server.published("file.bin") == BytePool.repeated(0..<3_000_000))
        }
    }

    @Test("SEC-17: a server starts on a full disk and serves its files; it is ready after a file was removed")
    func startOnFullDisk() throws {
        try withSmallDisk { server in
            let bytes = BytePool.repeated(0..<2_000_000)
            #expect(try server.exchange(Request("PUT", "/files/a", [], .bytes(bytes))).status == 201)
            #expect(try server.stop() == .exited(0))
            _ = try SmallDisk.fill(server.root)
            try server.restart()
            #expect(try server.exchange(.get("/files/a")).content == bytes)
            #expect(try server.exchange(.get("/readyz")).status == 503)
            #expect(try server.exchange(Request("DELETE", "/files/a")).status == 204)
            #expect(try eventually { try server.exchange(.get("/readyz")).status == 200 })
        }
    }

    @Test("An upload to a file system mounted below files/ fails, and completes when that file system is unmounted")
    func otherFileSystem() throws {
        try withServer { server in
            let volume = server.root + "/files/volume"
            try FileManager.default.createDirectory(atPath: volume, withIntermediateDirectories: false)
            let disk = try SmallDisk(on: volume, "size=1m")
            defer { disk.unmount() }
            let location = try server.begin(.v8, "/files/volume/a", [1])
            let refusal = try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2])))
            #expect(refusal.status == 500)
            #expect(refusal.complete == false)
            try server.awaitLog("cannot publish in files/volume: Invalid cross-device link (EXDEV)")
            try server.restart()
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 2)
            disk.unmount()
            #expect(try server.exchange(.append(.v8, location, at: 2, complete: true, .bytes([]))).status == 201)
            #expect(server.published("volume/a") == [1, 2])
        }
    }

    @Test("SEC-17: /readyz responds with 503 while the disk is full, and with 200 afterwards")
    func readiness() throws {
        try withSmallDisk { server in
            #expect(try server.exchange(.get("/readyz")).status == 200)
            let path = try SmallDisk.fill(server.root)
            #expect(try eventually { try server.exchange(.get("/readyz")).status == 503 })
            #expect(unlink(path) == 0)
            #expect(try eventually { try server.exchange(.get("/readyz")).status == 200 })
        }
    }

    @Test("SEC-17: a plain upload that does not fit leaves no file behind")
    func plain() throws {
        try withSmallDisk { server in
            let path = try SmallDisk.fill(server.root, leaving: 500_000)
            let connection = try server.connect()
            try connection.send(.creation(nil, "PUT", "/files/plain", complete: nil, .openChunks))
            var sent = 0
            while sent < 3_000_000, connection.sendUntilRefused(Request.chunk(BytePool.repeated(0..<100_000))) > 100_000
            {
                sent += 100_000
            }
            #expect(try connection.readResponse(to: "PUT").status == 507)
            #expect(eventually { server.unfinished.isEmpty })
            #expect(server.published("plain") == nil)
            #expect(unlink(path) == 0)
            #expect(
                try server.exchange(.creation(nil, "PUT", "/files/plain", complete: nil, .bytes([1]))).status == 201)
        }
    }
}
