import Testing

@Suite("The end of an upload's life", .blocking, .timeLimit(.minutes(15)))
struct ExpiryTests {
    private func begin(_ server: ServerProcess, _ name: String = "file.bin") throws -> (String, Response) {
        let response = try server.exchange(
            .creation(.v8, "PUT", "/files/\(name)", complete: false, .bytes(BytePool.repeated(0..<1000))))
        return (try #require(response.location), response)
    }

    /// Asks until the upload is gone.
    private func awaitGone(_ server: ServerProcess, _ location: String) throws -> ContinuousClock.Instant? {
        try Deadline.poll(within: .seconds(60)) {
            let response = try server.exchange(.retrieval(.v8, location))
            guard [404, 410].contains(response.status) else { return nil }
            #expect(response.offset == nil)
            return response.arrivedAt
        }
    }

    @Test("LIM-19 CAN-02: an upload past its age is inaccessible, and its bytes, place and quota are free")
    func expires() throws {
        try withServer("--max-age", "2s", "--max-uploads", "1", "--quota", "1500") { server in
            let (location, created) = try begin(server)
            let gone = try #require(try awaitGone(server, location))
            // Whole seconds are counted.
            #expect(gone - created.arrivedAt > .seconds(1))
            let append = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([1])))
            #expect([404, 410].contains(append.status))
            #expect(append.offset == nil)
            #expect(append.complete == false)
            let isFree: Bool? = Deadline.poll(within: .seconds(60)) { server.unfinished.isEmpty ? true : nil }
            #expect(isFree == true)
            let next = try Deadline.poll(within: .seconds(60)) {
                let response = try server.exchange(
                    .creation(complete: false, length: 1500, .bytes(BytePool.repeated(0..<1000))))
                return response.status == 201 ? response : nil
            }
            #expect(next != nil)
            #expect(server.published("file.bin") == nil)
        }
    }

    @Test("LIM-19: age goes on while the server is down")
    func expiresMeanwhile() throws {
        try withServer("--max-age", "2s") { server in
            let (location, _) = try begin(server)
            try server.crash()
            // Its age is measured by the clock on the wall.
            _ = Deadline.poll(within: .milliseconds(3100)) { nil as Bool? }
            try server.restart()
            #expect(try [404, 410].contains(server.exchange(.retrieval(.v8, location)).status))
            let isFree: Bool? = Deadline.poll(within: .seconds(60)) { server.unfinished.isEmpty ? true : nil }
            #expect(isFree == true)
        }
    }

    @Test("SEC-09 SEC-10: neither empty appends nor a running one lengthen an upload's life")
    func cannotBeKeptAlive() throws {
        try withServer("--max-age", "3s") { server in
            let (location, created) = try begin(server)
            let (other, _) = try begin(server, "other.bin")
            let running = try server.connect()
            try running.send(.append(.v8, other, at: 1000, complete: true, .declared(1000)))
            try running.send(BytePool.repeated(1000..<1100))
            let gone = try Deadline.poll(within: .seconds(60)) {
                let response = try server.exchange(.append(.v8, location, at: 1000, complete: false, .bytes([])))
                if response.isSuccessful { return nil as Response? }
                #expect([404, 410].contains(response.status))
                return response
            }
            #expect(try #require(gone).arrivedAt - created.arrivedAt < .seconds(6))
            // The request that still sends is ended, too.
            _ = try running.awaitClosing(within: .seconds(60))
            #expect(try [404, 410].contains(server.exchange(.retrieval(.v8, other)).status))
        }
    }

    @Test("LIM-12 OFF-16: what max-age promises never moves nearer")
    func endOfLife() throws {
        try withServer("--max-age", "100s") { server in
            let start = ContinuousClock.now
            let connection = try server.connect()
            try connection.send(.creation(complete: false, .declared(10)))
            let announced = try connection.readInterim()
            try connection.send(BytePool.repeated(0..<10))
            let created = try connection.readResponse(to: "PUT")
            let location = try #require(created.location)
            func end(_ carrier: any FieldCarrier, _ arrivedAt: ContinuousClock.Instant) throws -> Duration {
                arrivedAt - start + .seconds(try #require(carrier.limits?["max-age"]))
            }
            var ends = [try end(announced, announced.arrivedAt), try end(created, created.arrivedAt)]
            var last: Int64 = 100
            _ = try Deadline.poll(within: .milliseconds(2300)) {
                let head = try server.exchange(.retrieval(.v8, location))
                ends.append(try end(head, head.arrivedAt))
                last = try #require(head.limits?["max-age"])
                return nil as Bool?
            }
            #expect(last <= 98)
            // One second is what rounding may take.
            for value in ends {
                #expect(value > .seconds(98.9))
                #expect(value < .seconds(102))
            }
        }
    }

    @Test("CMP-04 CMP-05: the answer of a finished upload is kept for its time, and the file for ever")
    func completed() throws {
        try withServer("--keep-completed", "2s") { server in
            let (location, _) = try begin(server)
            let last = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([])))
            #expect(last.status == 201)
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204)
            #expect(head.complete == true)
            let again = try server.exchange(.append(.v8, location, at: 1000, complete: true, .bytes([])))
            #expect(again.status == 201)
            let gone = try #require(try awaitGone(server, location))
            #expect(gone - last.arrivedAt > .seconds(1))
            #expect(server.published("file.bin") == BytePool.repeated(0..<1000))
            #expect(try server.exchange(.get("/files/file.bin")).status == 200)
        }
    }
}
