import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

@Suite("Limits of a principal", .blocking)
struct AllowanceTests {
    private func create(
        _ server: ServerProcess, _ name: String, length: Int? = nil, sending count: Int
    ) throws -> Response {
        try server.exchange(
            .creation(
                .v8, "PUT", "/files/\(name)", complete: false, length: length, .bytes(BytePool.repeated(0..<count))))
    }

    private func expectRefusal(
        _ response: Response, _ status: Int, _ code: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(response.status == status, sourceLocation: sourceLocation)
        #expect(response.problem?.code == code, sourceLocation: sourceLocation)
        #expect(response.complete != true, sourceLocation: sourceLocation)
        #expect(response.location == nil, sourceLocation: sourceLocation)
        // With a shared storage the number of uploads is checked when the row is added. The row of an upload whose content
        // arrives with its head is added after the announcement.
        #expect(response.interim.isEmpty || SharedStorage.isSelected, sourceLocation: sourceLocation)
    }

    // MARK: Number of uploads

    @Test("SEC-08 CAN-02: a creation beyond --max-uploads gets 429 until another upload is completed or canceled")
    func numberOfUploads() throws {
        try withServer("--max-uploads", "3") { server in
            let locations = try (0..<3).map { try #require(try create(server, "\($0)", sending: 10).location) }
            expectRefusal(try create(server, "3", sending: 10), 429, "too-many-uploads")
            // The running uploads can continue.
            let last = try server.exchange(.append(.v8, locations[0], at: 10, complete: true, .bytes([1])))
            #expect(last.status == 201)
            #expect(try create(server, "3", sending: 10).status == 201)
            expectRefusal(try create(server, "4", sending: 10), 429, "too-many-uploads")
            #expect(try server.exchange(.cancellation(.v8, locations[1])).status == 204)
            #expect(try create(server, "4", sending: 10).status == 201)
            expectRefusal(try create(server, "5", sending: 10), 429, "too-many-uploads")
            // The number of uploads survives a crash.
            try server.restart()
            expectRefusal(try create(server, "5", sending: 10), 429, "too-many-uploads")
            #expect(try server.exchange(.cancellation(.v8, locations[2])).status == 204)
            #expect(try create(server, "5", sending: 10).status == 201)
        }
    }

    @Test("SEC-08: a plain upload does not count for --max-uploads")
    func plainUploads() throws {
        try withServer("--max-uploads", "1") { server in
            #expect(try create(server, "0", sending: 1).status == 201)
            let plain = try server.exchange(.creation(nil, "PUT", "/files/plain", complete: nil, .bytes([1, 2])))
            #expect(plain.status == 201)
        }
    }

    // MARK: Quota

    @Test("SEC-06 CAN-02: a quota counts files and announced lengths; DELETE of a file or upload releases its bytes")
    func quota() throws {
        try withServer("--quota", "100K") { server in
            let first = try #require(try create(server, "a", length: 60_000, sending: 100).location)
            expectRefusal(try create(server, "b", length: 40_001, sending: 0), 507, "quota-exceeded")
            let second = try create(server, "b", length: 40_000, sending: 0)
            #expect(second.status == 201)
            // An upload of unknown length is refused only when its content arrives.
            #expect(try create(server, "c", sending: 1).status == 507)
            #expect(try server.exchange(.cancellation(.v8, try #require(second.location))).status == 204)
            // A completed upload counts as much as the bytes that were reserved for it.
            let remaining = BytePool.repeated(100..<60_000)
            #expect(try server.exchange(.append(.v8, first, at: 100, complete: true, .bytes(remaining))).status == 201)
            expectRefusal(try create(server, "c", length: 40_001, sending: 0), 507, "quota-exceeded")
            #expect(try server.exchange(Request("DELETE", "/files/a")).status == 204)
            let third = try create(server, "c", length: 100_000, sending: 0)
            #expect(third.status == 201)
            #expect(try server.exchange(.cancellation(.v8, try #require(third.location))).status == 204)
        }
    }

    @Test(
        "SEC-06 SEC-11: an upload of unknown length stops at the quota with a correct offset, and continues later"
    )
    func quotaOfUnknownLength() throws {
        try withServer("--quota", "3M") { server in
            let old = try server.exchange(
                .creation(nil, "PUT", "/files/old", complete: nil, .bytes(BytePool.repeated(0..<1_000_000))))
            #expect(old.status == 201)
            let connection = try server.connect()
            try connection.send(.creation(complete: true, .openChunks))
            let location = try #require(try connection.requireInterim().location)
            var sent = 0
            while sent < 4_000_000,
                connection.sendUntilRefused(Request.chunk(BytePool.repeated(sent..<sent + 50_000))) > 0
            {
                sent += 50_000
            }
            let refusal = try connection.readResponse(to: "PUT")
            #expect(refusal.status == 507)
            #expect(refusal.problem?.code == "quota-exceeded")
            #expect(refusal.complete == false)
            let head = try server.exchange(.retrieval(.v8, location))
            let offset = Int(try #require(head.offset))
            #expect(offset <= 2_000_000)
            #expect(offset > 1_900_000)
            #expect(head.complete == false)
            if let reported = refusal.offset { #expect(reported <= Int64(offset)) }
            let completion = Request.append(
                .v8, location, at: offset, complete: true, .chunks([BytePool.repeated(offset..<2_900_000)]))
            #expect(try server.exchange(completion).status == 507)
            #expect(try server.exchange(Request("DELETE", "/files/old")).status == 204)
            let again = Int(try #require(try server.exchange(.retrieval(.v8, location)).offset))
            #expect(again >= offset)
            let last = try server.exchange(
                .append(.v8, location, at: again, complete: true, .chunks([BytePool.repeated(again..<2_900_000)])))
            #expect(last.status == 201)
            #expect(server.published("file.bin") == BytePool.repeated(0..<2_900_000))
            expectRefusal(try create(server, "more", length: 100_001, sending: 0), 507, "quota-exceeded")
        }
    }

    @Test("SEC-06: files that a user removes do not count for the quota")
    func removedByHand() throws {
        try withServer("--quota", "100K") { server in
            let put = try server.exchange(
                .creation(nil, "PUT", "/files/a", complete: nil, .bytes(BytePool.repeated(0..<90_000))))
            #expect(put.status == 201)
            #expect(try create(server, "b", length: 20_000, sending: 0).status == 507)
            try FileManager.default.removeItem(atPath: server.root + "/files/a")
            #expect(try eventually { try create(server, "b", length: 20_000, sending: 0).status == 201 })
        }
    }

    @Test("SEC-06: when a file is replaced, only the new file counts for the quota")
    func replacement() throws {
        try withServer("--quota", "100K") { server in
            for _ in 0..<4 {
                let put = try server.exchange(
                    .creation(nil, "PUT", "/files/a", complete: nil, .bytes(BytePool.repeated(0..<45_000))))
                #expect(put.isSuccessful)
            }
            #expect(try create(server, "b", length: 55_000, sending: 0).status == 201)
        }
    }

    // MARK: Free space

    @Test("CRE-23 SEC-17: below --min-free no upload is created, and running uploads continue")
    func minFreeSpace() throws {
        try withServer { server in
            let location = try #require(try create(server, "a", length: 20, sending: 10).location)
            try server.restart(["--min-free", "900T"])
            for complete in [true, false] {
                let refused = try server.exchange(.creation(complete: complete, .bytes([1, 2, 3])))
                expectRefusal(refused, 507, "insufficient-space")
            }
            let plain = try server.exchange(.creation(nil, "PUT", "/files/plain", complete: nil, .bytes([1])))
            #expect(plain.status == 507)
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 10)
            let last = try server.exchange(
                .append(.v8, location, at: 10, complete: true, .bytes(BytePool.repeated(10..<20))))
            #expect(last.status == 201)
            #expect(try server.exchange(.get("/files/a")).content == BytePool.repeated(0..<20))
            #expect(server.unfinished.isEmpty)
        }
    }

    @Test("SEC-17: an announced length that exceeds the free space is refused before the content")
    func tooLongForTheDisk() throws {
        try withServer { server in
            let response = try create(server, "a", length: 900_000_000_000_000, sending: 0)
            expectRefusal(response, 507, "insufficient-space")
            #expect(server.unfinished.isEmpty)
        }
    }
}
