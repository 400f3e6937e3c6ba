import ConformanceKit
import TestSupport
import Testing

@Suite("Expiry of uploads", .blocking)
struct ExpiryTests {
    /// Retrieves the upload until it is gone.
    private func awaitGone(_ server: ServerProcess, _ location: String) throws -> ContinuousClock.Instant? {
        try pollUntil(within: .seconds(60)) {
            let response = try server.exchange(.retrieval(.v8, location))
            guard [404, 410].contains(response.status) else { return nil }
            #expect(response.offset == nil)
            return ContinuousClock.now
        }
    }

    @Test("LIM-19 CAN-02: an expired upload is deleted, and no longer counts for --max-uploads and --quota")
    func expires() throws {
        try withServer("--max-age", "2s", "--max-uploads", "1", "--quota", "1500") { server in
            let begun = ContinuousClock.now
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            let gone = try #require(try awaitGone(server, location))
            // Lifetimes are counted in full seconds.
            #expect(gone - begun > .seconds(1))
            let append = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([1])))
            #expect([404, 410].contains(append.status))
            #expect(append.offset == nil)
            #expect(append.complete == false)
            #expect(eventually { server.unfinished.isEmpty })
            let next = try pollUntil(within: .seconds(60)) {
                let response = try server.exchange(
                    .creation(complete: false, length: 1500, .bytes(BytePool.repeated(0..<1000))))
                return response.status == 201 ? response : nil
            }
            #expect(next != nil)
            #expect(server.published("file.bin") == nil)
        }
    }

    @Test("SEC-09 SEC-10: neither an empty append nor a running append extends the lifetime of an upload")
    func cannotBeKeptAlive() throws {
        try withServer("--max-age", "6s") { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            let other = try server.begin(.v8, "/files/other.bin", BytePool.repeated(0..<1000))
            let running = try server.connect()
            try running.send(.append(.v8, other, at: 1000, complete: true, .declared(1000)))
            try running.send(BytePool.repeated(1000..<1100))
            let gone = try pollUntil(within: .seconds(60)) {
                let response = try server.exchange(.append(.v8, location, at: 1000, complete: false, .bytes([])))
                if response.isSuccessful { return nil as Response? }
                #expect([404, 410].contains(response.status))
                return response
            }
            #expect(gone != nil)
            // The append that is still sending ends, too.
            _ = try running.awaitClosing(within: .seconds(60))
            #expect(try [404, 410].contains(server.exchange(.retrieval(.v8, other)).status))
        }
    }

    @Test("CMP-04 CMP-05: the response of a completed upload expires after the configured time; the file remains")
    func completed() throws {
        try withServer("--keep-completed", "2s") { server in
            let (location, completed) = try Pace.within(.seconds(2)) { pace in
                let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
                pace.step()
                let begun = ContinuousClock.now
                let last = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([])))
                #expect([200, 201].contains(last.status))
                let head = try server.exchange(.retrieval(.v8, location))
                let again = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([])))
                guard head.status == 204, head.complete == true, again.status == last.status else {
                    throw TestFailure("\(head) \(again)")
                }
                return (location, begun)
            }
            let gone = try #require(try awaitGone(server, location))
            #expect(gone - completed > .seconds(1))
            #expect(server.published("file.bin") == BytePool.repeated(0..<1000))
            #expect(try server.exchange(.get("/files/file.bin")).status == 200)
        }
    }
}
