import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests how often the origin is called for an upload, and the responses that the client gets before the end.
@Suite("Gateway: the effect of an upload", .blocking)
struct GatewayEffectOnceTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content
    private static let secret = "Bearer forwarded-credential-0123456789"

    /// Responds with these statuses, in order, and then accepts everything.
    private static func origin(_ first: [(status: String, fields: [(String, String)])]) throws -> ScriptedServer {
        let left = Monitor(first)
        return try ScriptedServer.origin { request, connection in
            if let next = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                return try connection.respond(next.status, next.fields, "later")
            }
            try Fixture.accept(request, connection)
        }
    }

    // MARK: An origin that has not worked on the upload

    @Test(
        "an origin that is down: the upload waits, and is sent once when the client repeats its request",
        arguments: GatewayUploadFixture.versions)
    func down(version: Interop?) throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=0s") { server in
            let location = try Fixture.begin(server, version, Array(Self.content[..<50_000]))
            let refused = try server.exchange(
                .append(version, location, at: 50_000, complete: true, .bytes(Array(Self.content[50_000...]))))
            Fixture.expectUnavailable(refused, version)
            // A restart of the server changes nothing.
            try server.restart()
            for _ in 0..<2 {
                if version == .v5 || version == .v6 {
                    // In these versions a retrieval completes an upload whose length is reached (VER-24).
                    let state = try server.retrieve(location, version)
                    #expect(state.status == 423 && state.complete == false, "\(state)")
                    #expect(state.offset == Int64(Self.content.count) && state.value("Retry-After") == "1", "\(state)")
                } else {
                    try Fixture.expectWaiting(server, location, version)
                }
                Fixture.expectUnavailable(try Fixture.complete(server, location, version), version)
            }
            #expect(origin.requests.isEmpty)
            try origin.restart()
            Fixture.expectAnswer(
                try Fixture.complete(server, location, version, [("Authorization", Self.secret)]), version)
            try Fixture.expectRequest(origin.requests.first, credentials: [("Authorization", Self.secret)])
            let state = try server.retrieve(location, version)
            #expect(state.states(complete: true, in: version))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("an origin that is down during a creation in one request: the announced upload keeps its bytes")
    func downAtCreation() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=0s") { server in
            var request = Request.creation(.v8, "POST", Fixture.target, complete: true, .bytes(Self.content))
            request.fields += Fixture.fields
            let refused = try server.exchange(request)
            Fixture.expectUnavailable(refused)
            let location = try #require(refused.interim.first { $0.status == 104 }?.location)
            try Fixture.expectWaiting(server, location)
            try origin.restart()
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            try Fixture.expectRequest(origin.requests.first)
            #expect(origin.requests.count == 1)

            // Without a version nothing announces the upload before the response, so the client sends it again.
            origin.stop()
            let unannounced = try server.exchange(
                .creation(nil, "POST", "/app/x", complete: true, .bytes(Self.content)))
            #expect(unannounced.status == 503 && unannounced.complete == false, "\(unannounced)")
            #expect(unannounced.value("Retry-After") == "1" && unannounced.location == nil, "\(unannounced)")
            #expect(origin.requests.count == 1)
        }
    }

    @Test("an origin that starts while the client waits: the same request gets its response")
    func startsMeanwhile() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=60s") { server in
            let location = try Fixture.begin(server)
            let waiting = try server.connect()
            try waiting.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            try Fixture.expectWaiting(server, location)
            #expect(waiting.staysSilent(for: .milliseconds(300)))
            try origin.restart()
            Fixture.expectAnswer(try waiting.readResponse(), .v8)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("503 is retried within the time of the route, and the client gets the first other response")
    func unavailableFirst() throws {
        let origin = try Self.origin([("503 Wait", []), ("503 Wait", [("Retry-After", "soon")]), ("503 Wait", [])])
        try withGateway(to: origin, "retry=60s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 4)
            for request in origin.requests { try Fixture.expectRequest(request) }
            #expect(Set(origin.requests.map { $0.fields["Onward-Upload"] }).count == 1)
        }
    }

    @Test(
        "503 beyond the time of the route: the client gets it with Retry-After, and the upload waits",
        arguments: [(nil, "1"), ("7", "7"), ("0", "1"), ("86400", "3600"), ("soon", "1")] as [(String?, String)])
    func unavailable(sent: String?, received: String) throws {
        let origin = try Self.origin([("503 Wait", sent.map { [("Retry-After", $0), ("Set-Cookie", "a=b")] } ?? [])])
        try withGateway(to: origin, "retry=0s") { server in
            let location = try Fixture.begin(server)
            let refused = try Fixture.complete(server, location)
            Fixture.expectUnavailable(refused, retryAfter: received)
            #expect(!refused.fields.contains("Set-Cookie"))
            try Fixture.expectWaiting(server, location)
            #expect(origin.requests.count == 1)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("a Retry-After can be a date")
    func dateInRetryAfter() throws {
        let now = SystemClock.realtimeSeconds()
        let dates = [(now + 600, 500...600), (now - 600, 1...1), (now + 100_000, 3600...3600)]
        for (date, expected) in dates {
            let value = HTTPDate(secondsSinceEpoch: date).serialized
            let origin = try Self.origin([("503 Wait", [("Retry-After", value)])])
            try withGateway(to: origin, "retry=0s") { server in
                let refused = try Fixture.complete(server, try Fixture.begin(server))
                #expect(refused.status == 503, "\(refused)")
                #expect(
                    expected.contains(refused.value("Retry-After").flatMap { Int($0) } ?? -1), "\(value): \(refused)")
            }
        }
    }

    @Test("a Retry-After beyond the time of the route ends the wait at once")
    func longRetryAfter() throws {
        let origin = try Self.origin([("503 Wait", [("Retry-After", "600")])])
        try withGateway(to: origin, "retry=60s") { server in
            let location = try Fixture.begin(server)
            let start = ContinuousClock.now
            Fixture.expectUnavailable(try Fixture.complete(server, location), retryAfter: "600")
            #expect(ContinuousClock.now - start < .seconds(50))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("a 503 whose content is larger than any stored response is retried, too")
    func largeUnavailable() throws {
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            if calls.next() > 1 { return try Fixture.accept(request, connection) }
            try connection.respond("503 Wait", [], String(repeating: "x", count: 2 << 20))
        }
        try withGateway(to: origin, "retry=0s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnavailable(try Fixture.complete(server, location))
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("a canceled upload that waits for its origin never reaches it")
    func canceled() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=0s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnavailable(try Fixture.complete(server, location))
            #expect(try server.exchange(.cancellation(.v8, location)).status == 204)
            try origin.restart()
            #expect(try server.retrieve(location).status == 404)
            #expect(try Fixture.complete(server, location).status == 404)
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("a client that leaves while the origin is down ends the attempts; the upload waits")
    func clientLeaves() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=1h") { server in
            let location = try Fixture.begin(server)
            let leaving = try server.connect()
            try leaving.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            try Fixture.expectWaiting(server, location)
            leaving.reset()
            try server.awaitInterruption("PATCH")
            try Fixture.expectWaiting(server, location)
            try origin.restart()
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 1)
        }
    }

    // MARK: An origin that may have worked on the upload

    /// The failure of an origin after it has got a request.
    enum Failure: String, CaseIterable, Sendable {
        case closes, resets, resetsEarly, cutsHead, cutsLength, cutsChunks, stalls, stallsInContent, sendsNoHTTP,
            switches

        func perform(_ connection: Reply) throws {
            try connection.discardContent(atMost: self == .resetsEarly ? 1000 : .max)
            switch self {
            case .closes: connection.close()
            case .resets, .resetsEarly: connection.reset()
            case .cutsHead:
                try connection.send("HTTP/1.1 200 OK\r\nContent-Le")
                connection.close()
            case .cutsLength:
                try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                connection.close()
            case .cutsChunks:
                try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
                connection.close()
            case .stalls: _ = connection.awaitClosing(within: .seconds(60))
            case .stallsInContent:
                try connection.send("HTTP/1.1 503 Wait\r\nContent-Length: 10\r\n\r\nhalf")
                _ = connection.awaitClosing(within: .seconds(60))
            case .sendsNoHTTP:
                try connection.send("220 mail.example ready\r\n")
                connection.close()
            case .switches: try connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
            }
        }
    }

    @Test("a request without a complete response is never sent again: a final 502", arguments: Failure.allCases)
    func unknownOutcome(failure: Failure) throws {
        let origin = try ScriptedServer.origin { _, connection in try failure.perform(connection) }
        try withGateway(to: origin, "timeout=1s", "retry=60s") { server in
            // More than the buffers of the connection, so that the origin can fail before it has read everything.
            let content = failure == .resetsEarly ? Payload.bytes(16 << 20) : Self.content
            let location = try Fixture.begin(server, .v8, content)
            Fixture.expectUnknown(try Fixture.complete(server, location, at: content.count))
            #expect(origin.requests.count == 1)
            try Fixture.expectFinal(server, origin, location, length: content.count) { Fixture.expectUnknown($0) }
            #expect(try server.exchange(.cancellation(.v8, location)).status < 500)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("a request without a complete response, in the other versions", arguments: GatewayUploadFixture.versions)
    func unknownOutcomeInVersion(version: Interop?) throws {
        let origin = try ScriptedServer.origin { _, connection in try Failure.resets.perform(connection) }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server, version)
            Fixture.expectUnknown(try Fixture.complete(server, location, version), version)
            let created = try server.exchange(
                .creation(version, "POST", "/app/x", complete: true, .bytes(Self.content)))
            Fixture.expectUnknown(created, version)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("on a repeatable route such a request is sent again, with the same key", arguments: Failure.allCases)
    func repeated(failure: Failure) throws {
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            if calls.next() <= 2 { try failure.perform(connection) } else { try Fixture.accept(request, connection) }
        }
        try withGateway(to: origin, "repeat=safe", "timeout=1s") { server in
            let content = failure == .resetsEarly ? Payload.bytes(16 << 20) : Self.content
            let location = try Fixture.begin(server, .v8, content)
            for number in 1...2 {
                let refused = try Fixture.complete(server, location, at: content.count)
                Fixture.expectUnavailable(refused, length: content.count)
                try Fixture.expectWaiting(server, location, length: content.count)
                #expect(origin.requests.count == number)
            }
            Fixture.expectAnswer(try Fixture.complete(server, location, at: content.count), .v8)
            #expect(origin.requests.count == 3)
            try Self.expectOneKey(origin)
            try Fixture.expectFinal(server, origin, location, length: content.count) {
                Fixture.expectAnswer($0, .v8, isLive: false)
            }
        }
    }

    /// Expects that all requests have the same key, which is that of the upload.
    static func expectOneKey(_ origin: ScriptedServer) throws {
        for request in origin.requests {
            let upload = try #require(request.fields["Onward-Upload"])
            #expect(request.fields.values("Idempotency-Key") == ["\"\(upload)\""])
            #expect(upload == origin.requests.first?.fields["Onward-Upload"])
        }
    }

    @Test("several requests that complete the same upload at the same time: the origin is called once")
    func simultaneous() throws {
        let hold = Monitor(Hold())
        let origin = try ScriptedServer.origin { request, connection in
            hold.withLock { $0 }.wait()
            try Fixture.accept(request, connection)
        }
        try withGateway(to: origin) { server in
            for round in 1...3 {
                let location = try Fixture.begin(server)
                let connections = try (0..<6).map { _ in try server.connect() }
                for connection in connections {
                    try connection.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
                }
                #expect(origin.awaitRequests(round))
                hold.withLock { $0 }.release()
                var answers = 0
                for connection in connections {
                    do {
                        let response = try connection.readResponse()
                        #expect(response.status == 201 || response.complete == false, "\(response)")
                        if response.status == 201 { answers += 1 }
                    } catch WireFailure.closed, WireFailure.reset {
                        // Another request took the upload over before the origin was called.
                    }
                }
                #expect(answers >= 1)
                #expect(origin.requests.count == round)
                hold.withLock { $0 = Hold() }
            }
        }
    }
}
