import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Draft section 4.3.
@Suite("Offset retrieval", .serialized, .timeLimit(.minutes(15)), .blocking)
struct RetrievalTests {
    @Test(
        "OFF-01 OFF-02 OFF-05 OFF-06 OFF-07 OFF-08 CCH-01: HEAD and GET tell the state, without content, for no cache",
        arguments: ["HEAD", "GET"], [Interop?.none, .v8])
    func state(method: String, version: Interop?) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(25), length: 60)
            let connection = try server.connect()
            let state = try connection.exchange(.retrieval(version, location, method).with("If-None-Match", "*"))
            #expect(state.status == 204)
            #expect(state.offset == 25)
            #expect(state.complete == false)
            #expect(state.length == 60)
            #expect(state.limits?.isEmpty == false)
            #expect(state.list("Cache-Control").contains("no-store"))
            #expect(!state.fields.contains("ETag"))
            #expect(state.body.isEmpty)
            // Nothing follows: the next response begins where this one ends.
            #expect(try connection.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("OFF-02 CMP-04: HEAD tells ?1 after completion, with the final offset", arguments: [true, false])
    func completed(inOneRequest: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(25)
            let connection = try server.connect()
            var location: String?
            if inOneRequest {
                let response = try connection.exchange(.creation(.v8, complete: true, .bytes(content)))
                location = response.interim.first?.location
            } else {
                location = try server.begin(.v8, "/files/file.bin", content)
                _ = try server.exchange(.append(.v8, try #require(location), at: 25, complete: true, .bytes([])))
            }
            let state = try server.retrieve(try #require(location))
            #expect(state.complete == true)
            #expect(state.offset == 25)
            #expect(state.length == 25)
        }
    }

    @Test("OFF-04: without any indication there is no Upload-Length")
    func unknownLength() throws {
        try withServer { server in
            let response = try server.exchange(.creation(.v8, complete: false, .chunks([Payload.bytes(5)])))
            let state = try server.retrieve(try #require(response.location))
            #expect(!state.fields.contains("Upload-Length"))
            #expect(state.offset == 5)
        }
    }

    @Test("OFF-09 OFF-10 OFF-18 INT-08: what was told survives the death of the server")
    func survives() throws {
        try withServer { server in
            let content = Payload.bytes(48 << 20)
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(Int64(content.count))))
            let location = try #require(try connection.readInterim().location)
            // The server tells an offset while content comes; then it dies.
            var told: Int64 = 0
            var sent = 0
            while told == 0 && sent < content.count {
                let next = min(sent + (2 << 20), content.count - 1)
                try connection.send(content[sent..<next])
                sent = next
                if !connection.staysSilent(for: .milliseconds(20)) {
                    told = try connection.readInterim().offset ?? 0
                }
                if sent == content.count - 1 { break }
            }
            try #require(told > 0, "no progress response came")
            try server.crash()
            try server.restart()
            let state = try server.retrieve(location)
            let offset = Int(try #require(state.offset))
            #expect(offset >= told)
            #expect(offset <= sent)
            #expect(state.complete == false)
            let done = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(Array(content[offset...]))),
                within: .seconds(30))
            #expect(done.status == 201)
            #expect(server.published("file.bin")?.sha256 == content.sha256)
        }
    }

    @Test("OFF-10: an offset told in a final response survives the death of the server", arguments: [true, false])
    func finalOffsetSurvives(relaxed: Bool) throws {
        try withServer("--durability", relaxed ? "relaxed" : "acknowledged") { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(100_000))
            try server.crash()
            try server.restart()
            #expect(try server.retrieve(location).offset == 100_000)
            let append = try server.exchange(.append(.v8, location, at: 100_000, complete: false, .bytes([1])))
            #expect(append.status == 204)
            try server.crash()
            try server.restart()
            #expect(try server.retrieve(location).offset == 100_001)
            #expect(try server.exchange(.append(.v8, location, at: 100_001, complete: true, .bytes([]))).status == 201)
            try server.crash()
            try server.restart()
            #expect(try server.retrieve(location).complete == true)
            #expect(server.published("f") == Payload.bytes(100_000) + [1])
        }
    }

    @Test("OFF-11 CON-01: the offset that a stalled append leaves is accepted by the next one")
    func usable() throws {
        try withServer { server in
            let content = Payload.bytes(1000)
            let location = try server.begin(.v8, "/files/f", Array(content[..<100]))
            let stalled = try server.connect()
            try stalled.open(.append(.v8, location, at: 100, complete: true, .declared(900)))
            try stalled.send(content[100..<350])
            let offset = Int(try #require(try server.retrieve(location).offset))
            #expect((100...350).contains(offset))
            let rest = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(Array(content[offset...]))))
            #expect(rest.status == 201)
            #expect(server.published("f") == content)
            withExtendedLifetime(stalled) {}
        }
    }

    @Test(
        "OFF-12 SEC-14 PRB-06: what is no upload is 404 without state", arguments: Interop.allCases.map { $0 } + [nil])
    func unknown(version: Interop?) throws {
        try withServer { server in
            for target in ["/uploads/unknown", "/uploads/00000000000000000000000000000000"] {
                for method in ["HEAD", "GET"] {
                    let response = try server.exchange(.retrieval(version, target, method))
                    #expect(response.status == 404)
                    #expect(!response.fields.contains("Upload-Offset"))
                }
                let append = try server.exchange(.append(version, target, at: 0, complete: true, .bytes([1])))
                #expect(append.status == 404)
                #expect(try server.exchange(.cancellation(version, target)).status == 404)
            }
        }
    }

    @Test("OFF-13 CAN-04 RED-01: no request on an upload is redirected")
    func noRedirection() throws {
        try withServer { server in
            let location = try server.begin()
            for target in [location, location + "/", location + "?x=y", "/uploads", "/uploads/"] {
                for method in ["HEAD", "GET", "DELETE"] {
                    let response = try server.exchange(Request(method, target, Request.versionField(.v5)))
                    #expect(!(300..<400).contains(response.status), "\(method) \(target)")
                }
            }
        }
    }

    @Test("OFF-15: an upload whose bytes are missing is gone, never smaller")
    func bytesLost() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5000))
            try server.crash()
            let directory = server.root + "/uploads"
            let names = (try FileManager.default.subpathsOfDirectory(atPath: directory)).filter { name in
                (FileManager.default.contents(atPath: directory + "/" + name)?.count ?? 0) >= 5000
            }
            try #require(names.count == 1)
            #expect(truncate(directory + "/" + names[0], 1234) == 0)
            try server.restart()
            for request in [
                Request.retrieval(.v8, location), .append(.v8, location, at: 1234, complete: true, .bytes([1])),
                .append(.v8, location, at: 5000, complete: true, .bytes([])), .retrieval(.v8, location),
            ] {
                let response = try server.exchange(request)
                #expect([404, 410].contains(response.status))
                #expect(!response.fields.contains("Upload-Offset"))
            }
            #expect(server.published("f") == nil)
        }
    }

    @Test("OFF-16 LIM-12: max-age counts down, and the end of life does not come nearer")
    func maxAge() throws {
        try withServer("--max-age", "100s") { server in
            let clock = ContinuousClock()
            let start = clock.now
            // For each answer the moments between which it was made, and so the ends of life between which it tells one.
            var ends: [(first: Duration, last: Duration)] = []
            func note(_ answer: any FieldCarrier, askedAt asked: ContinuousClock.Instant) throws {
                let life = Duration.seconds(try #require(answer.limits?["max-age"]))
                // A second may be lost to rounding.
                ends.append((asked - start + life, clock.now - start + life + .seconds(1)))
            }
            let created = try server.exchange(.creation(.v8, complete: false, .bytes([1])))
            let location = try #require(created.location)
            try note(try #require(created.interim.first), askedAt: start)
            try note(created, askedAt: start)
            let last = try #require(
                try pollUntil(within: .seconds(60)) { () -> Response? in
                    let asked = clock.now
                    let state = try server.retrieve(location)
                    try note(state, askedAt: asked)
                    return asked - start > .milliseconds(2100) ? state : nil
                })
            #expect(try #require(last.limits?["max-age"]) <= 98)
            // One end is what all of them may mean.
            #expect(try #require(ends.map(\.first).max()) <= #require(ends.map(\.last).min()))
        }
    }

    @Test("OFF-17 H11-16: a HEAD has no content, whatever follows in the same segment")
    func pipelinedHead() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(10))
            let connection = try server.connect()
            let requests = [Request.retrieval(.v8, location), .retrieval(.v8, "/uploads/none"), .get("/healthz")]
            try connection.send(requests.flatMap { $0.serialized(authority: server.authority) })
            #expect(try connection.readResponse(to: "HEAD").offset == 10)
            #expect(try connection.readResponse(to: "HEAD").status == 404)
            #expect(try connection.readResponse(to: "GET").text == "ok\n")
        }
    }
}
