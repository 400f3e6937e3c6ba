import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

/// Tests which events an upload has, and how they are delivered to an endpoint.
@Suite("Gateway: the delivery of events", .blocking)
struct GatewayEventDeliveryTests {
    private static let metadata = [("Content-Type", "text/x-test"), ("X-Key", "private-field-0123456789")]

    // MARK: Kinds of events

    @Test("created, completed, refused and canceled uploads, and plain uploads, each with its data")
    func kinds() throws {
        let endpoint = try EventEndpoint()
        let origin = try ScriptedServer.origin { request, connection in
            try connection.respond(request.path == "/app/bad" ? "422 No" : "201 Made")
        }
        let options = ["--route", "/app=\(origin.url),access=open", "--allow-anonymous"]
        try endpoint.withServer("source=https://files.example", options: options) { server in
            func create(_ target: String, _ content: [UInt8]) throws -> Response {
                var request = Request.creation(.v8, "PUT", target, complete: true, .bytes(content))
                request.fields += Self.metadata
                return try server.exchange(request)
            }
            // An upload in several requests, and one in a single request.
            var first = Request.creation(.v8, "PUT", "/files/a%20b.txt?secret=1", complete: false, .bytes([1, 2]))
            first.fields += Self.metadata
            let location = try #require(try server.exchange(first).location)
            #expect(try server.exchange(.append(.v8, location, at: 2, complete: true, .bytes([3]))).status == 201)
            #expect(try create("/files/once", [1, 2, 3, 4]).status == 201)
            // A route: the application accepts one upload, and refuses the other.
            #expect(try create("/app/good", [1]).status == 201)
            #expect(try create("/app/bad", [1]).status == 422)
            #expect(try server.exchange(Request("PUT", "/app/plain", [], .bytes([1]))).status == 201)
            // Uploads that end without a final response.
            let canceled = try server.begin(.v8, "/files/canceled", [1])
            #expect(try server.exchange(.cancellation(.v8, canceled)).status == 204)
            let long = try server.begin(.v8, "/files/long", [1], length: 2)
            #expect(try server.exchange(.append(.v8, long, at: 1, complete: true, .chunks([[2, 3, 4]]))).status >= 400)
            // Plain uploads: the second one replaces the file. A removal and a rejected request have no event.
            for status in [201, 204] {
                #expect(try server.exchange(Request("PUT", "/files/plain", [], .bytes([5]))).status == status)
            }
            #expect(try server.exchange(Request("DELETE", "/files/plain")).status == 204)
            #expect(
                try server.exchange(Request("PUT", "/files/x", [("If-Match", "\"no\"")], .bytes([5]))).status == 412)
            try server.store(["/files/last"])

            let accepted = endpoint.awaitAccepted(15)
            for (target, kinds) in [
                "/files/a%20b.txt": ["created", "completed"], "/files/once": ["created", "completed"],
                "/app/good": ["created", "completed"], "/app/bad": ["created", "refused"], "/app/plain": [],
                "/files/canceled": ["created", "canceled"], "/files/long": ["created", "refused"],
                "/files/plain": ["completed", "completed"], "/files/x": [], "/files/last": ["completed"],
            ] {
                #expect(accepted.kinds(of: target) == kinds, "\(target)")
            }
            #expect(accepted.count == 15 && Set(accepted.map(\.id)).count == 15)
            #expect(Set(accepted.map(\.source)) == ["https://files.example"])
            #expect(Set(accepted.map(\.data.principal)) == ["anonymous"])

            let ended = accepted.filter { $0.kind != "created" }
            func end(_ target: String) throws -> ReceivedEvent.Payload {
                try #require(ended.first { $0.data.target == target }).data
            }
            let stored = try end("/files/a%20b.txt")
            #expect(stored.method == "PUT" && stored.length == 3 && stored.status == 201 && stored.file == "a b.txt")
            #expect(stored.fields == ["content-type": "text/x-test"] && stored.reason == nil)
            #expect(accepted.first { $0.data.target == "/files/once" && $0.kind == "created" }?.data.status == nil)
            let good = try end("/app/good")
            #expect(good.status == 201 && good.file == nil && good.length == 1)
            #expect(origin.requests.contains { $0.path == "/app/good" && $0.fields["Onward-Upload"] == good.upload })
            #expect(try end("/app/bad").status == 422)
            let refused = try end("/files/long")
            #expect(refused.reason != nil && refused.status == nil, "\(refused)")
            // The URL of an upload cannot be derived from its events, and its events name it by one value.
            let secret = location.split(separator: "/").last.map(String.init) ?? location
            #expect(accepted.allSatisfy { !"\($0)".contains(secret) && !"\($0)".contains("private-field") })
            #expect(Set(accepted.filter { $0.data.target == "/files/a%20b.txt" }.map(\.data.upload)).count == 1)
            #expect(server.log.contains("upload:\(stored.upload.prefix(8))"))
        }
    }

    @Test("an upload that expires")
    func expired() throws {
        let endpoint = try EventEndpoint()
        try endpoint.withServer(options: ["--max-age", "1s"]) { server in
            _ = try server.begin(.v8, "/files/expired", [1, 2, 3], length: 10)
            let events = endpoint.awaitAccepted(2)
            #expect(events.kinds(of: "/files/expired") == ["created", "expired"])
            #expect(events.last?.data.length == 10 && events.last?.data.status == nil)
        }
    }

    @Test("the principal is the name of the token; a request without a token has no event")
    func principals() throws {
        let endpoint = try EventEndpoint(secrets: [])
        let tokens = try TemporaryDirectory()
        let file = try tokens.file("tokens", Array("anna token-of-anna-0123456789 read,write\n".utf8))
        try endpoint.withServer(options: ["--token-file", file]) { server in
            let request = Request.creation(.v8, "PUT", "/files/x", complete: true, .bytes([1]))
            let authorized = request.with("Authorization", "Bearer token-of-anna-0123456789")
            let statuses = try [request, authorized].map { try server.exchange($0).status }
            #expect(statuses == [401, 201])
            let events = endpoint.awaitAccepted(2)
            #expect(events.map(\.kind) == ["created", "completed"])
            #expect(Set(events.map(\.data.principal)) == ["anna"])
        }
    }

    // MARK: Another attempt

    @Test(
        "an event that was not accepted is sent again, and before the next event of its upload",
        arguments: ["500", "redirect", "cut", "reset", "timeout", "closed port", "invalid"])
    func again(_ failure: String) throws {
        let failed = Monitor<Set<String>>([])
        let endpoint = try EventEndpoint { event in
            guard event.kind == "created", failed.withLock({ $0.insert(event.id).inserted }) else {
                return .status("200 OK")
            }
            return switch failure {
            case "500": .status("500 No")
            case "redirect": .status("307 There", [("Location", "/events")])
            case "cut": .bytes("HTTP/1.1 200 OK\r\nContent-Le")
            case "reset": .bytes("")
            case "timeout": .silence
            case "invalid": .bytes("I am no server of HTTP\r\n\r\n")
            default: .status("200 OK")
            }
        }
        if failure == "closed port" { endpoint.origin.stop() }
        try endpoint.withServer("timeout=1s") { server in
            let location = try server.begin(.v8, "/files/x", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2]))).status == 201)
            if failure == "closed port" {
                let metrics = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1 }
                #expect(metrics["onward_events{state=\"waiting\"}"] == 2)
                try endpoint.origin.restart()
            }
            let accepted = endpoint.awaitAccepted(2)
            #expect(accepted.map(\.kind) == ["created", "completed"])
            let attempts = endpoint.attempts.map(\.kind)
            #expect(attempts == (failure == "closed port" ? [] : ["created"]) + ["created", "completed"])
            let metrics = try server.metrics { $0["onward_events{state=\"waiting\"}"] == 0 }
            #expect(metrics["onward_events_delivered_total"] == 2 && metrics["onward_events_recorded_total"] == 2)
            #expect(metrics["onward_events_failed_attempts_total"] >= 1)
            #expect(server.log.contains("could not be delivered to \(endpoint.origin.url)/events: "))
            #expect(server.log.contains("the delivery of events to"))
        }
    }

    @Test(
        "an accepting response without an end counts as a delivery, and needs no memory", .blocking(limit: .seconds(60))
    )
    func endless() throws {
        let endpoint = try EventEndpoint { $0.kind == "created" ? .endless : .status("202 Later") }
        try endpoint.withServer { server in
            let location = try server.begin(.v8, "/files/x", [1])
            let before = try ProcessUse(of: server.process.identifier).resident
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2]))).status == 201)
            #expect(endpoint.awaitAccepted(2).map(\.kind) == ["created", "completed"])
            #expect(try ProcessUse(of: server.process.identifier).resident < before + 30_000)
        }
    }

    @Test("Retry-After is the minimum time until the next attempt")
    func retryAfter() throws {
        let failed = Monitor<Set<String>>([])
        let endpoint = try EventEndpoint { event in
            failed.withLock { $0.insert(event.id).inserted }
                ? .status("503 Busy", [("Retry-After", "3")]) : .status("200 OK")
        }
        try endpoint.withServer { server in
            try server.store(["/files/x"])
            let event = try #require(endpoint.awaitAccepted(1).first)
            let times = endpoint.times(of: event)
            #expect(times.count == 2 && times[1] - times[0] >= .seconds(3))
        }
    }

    @Test("if an event is set aside, the next event of its upload is delivered at once")
    func settingAside() throws {
        // The next attempt for the first event would be made after an hour.
        let endpoint = try EventEndpoint { event in
            event.kind == "created" ? .status("503 Busy", [("Retry-After", "3600")]) : .status("200 OK")
        }
        try endpoint.withServer("retry=1s") { server in
            let location = try server.begin(.v8, "/files/x", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2]))).status == 201)
            #expect(endpoint.awaitAccepted(1).map(\.kind) == ["completed"])
            #expect(endpoint.attempts.map(\.kind) == ["created", "completed"])
        }
    }

    @Test("a rejection delays only the events of the same upload")
    func rejection() throws {
        let endpoint = try EventEndpoint { event in
            event.data.target == "/files/bad" ? .status("400 No") : .status("200 OK")
        }
        try endpoint.withServer { server in
            let bad = try server.begin(.v8, "/files/bad", [1])
            #expect(try server.exchange(.append(.v8, bad, at: 1, complete: true, .bytes([2]))).status == 201)
            try server.store((0..<40).map { "/files/\($0)" })
            #expect(endpoint.awaitAccepted(40).count == 40)
            // More than eight rejections in sequence would make an unavailable receiver.
            endpoint.awaitAttempts(42)
            #expect(endpoint.attempts.kinds(of: "/files/bad") == ["created"])
            endpoint.respond { _ in .status("200 OK") }
            #expect(endpoint.awaitAccepted(42).kinds(of: "/files/bad") == ["created", "completed"])
        }
    }

    @Test("the order of the events of each upload, with a receiver that often fails")
    func order() throws {
        let random = Monitor(SeededGenerator(seed: 20_261_126))
        let endpoint = try EventEndpoint { _ in
            random.withLock { Int.random(in: 0..<5, using: &$0) } == 0 ? .status("500 No") : .status("200 OK")
        }
        try endpoint.withServer { server in
            let targets = (0..<30).map { "/files/\($0)" }
            for target in targets {
                let location = try server.begin(.v8, target, [1])
                #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status == 201)
            }
            let accepted = endpoint.awaitAccepted(60, within: .seconds(60))
            for target in targets {
                #expect(accepted.filter { $0.data.target == target }.map(\.kind) == ["created", "completed"])
                // No attempt for the second event is earlier than the acceptance of the first one.
                let attempts = endpoint.attempts.filter { $0.data.target == target }.map(\.kind)
                #expect(attempts == attempts.filter { $0 == "created" } + attempts.filter { $0 == "completed" })
            }
        }
    }

    // MARK: TLS

    @Test("an endpoint whose certificate is not trusted gets nothing")
    func untrusted() throws {
        let receiver = try SecureServer()
        try withServer(options: ["--events", "\(receiver.url)/events"]) { server in
            try server.store(["/files/x"])
            let metrics = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1 }
            #expect(metrics["onward_events{state=\"waiting\"}"] == 1 && metrics["onward_events_delivered_total"] == 0)
            #expect(server.log.lowercased().contains("certificate"), "\(server.log)")
        }
    }

    // MARK: The end of the server

    @Test("SIGTERM during a delivery ends the server at once, and the event is delivered by the next start")
    func termination() throws {
        let endpoint = try EventEndpoint { _ in .silence }
        try endpoint.withServer { server in
            try server.store((0..<6).map { "/files/\($0)" })
            endpoint.awaitAttempts(4)
            #expect(try server.stop(within: .seconds(5)) == .exited(0))
            endpoint.respond { _ in .status("200 OK") }
            try server.restart()
            #expect(endpoint.awaitAccepted(6).count == 6)
        }
    }

    @Test("a stop loses no record of a delivery: nothing is delivered twice")
    func restarts() throws {
        let endpoint = try EventEndpoint()
        try endpoint.withServer(options: ["--durability", "relaxed"]) { server in
            for round in 0..<3 {
                try server.store((0..<50).map { "/files/\(round)-\($0)" })
                #expect(endpoint.awaitAccepted(50 * (round + 1)).count == 50 * (round + 1))
                #expect(try server.stop() == .exited(0))
                try server.restart()
            }
            _ = try server.metrics { $0["onward_events{state=\"waiting\"}"] == 0 }
            #expect(endpoint.accepted.repeated.isEmpty)
        }
    }
}
