import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

/// A receiver that is down, and events that cannot be delivered.
@Suite("Gateway: events and a receiver that is down", .blocking)
struct GatewayEventOutageTests {
    private static let waiting = "onward_events{state=\"waiting\"}"
    private static let setAside = "onward_events{state=\"set-aside\"}"

    @Test("a receiver that comes back gets every event once")
    func comesBack() throws {
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try endpoint.withServer(options: ["--durability", "relaxed"]) { server in
            try server.store((0..<600).map { "/files/\($0)" })
            _ = try server.metrics { $0[Self.waiting] == 600 && $0["onward_events_failed_attempts_total"] >= 8 }
            try endpoint.origin.restart()
            // The pause before the next attempt can be as long as the time for which the receiver was down.
            #expect(endpoint.awaitAccepted(600, within: .seconds(120)).count == 600)
            let metrics = try server.metrics { $0[Self.waiting] == 0 }
            #expect(metrics["onward_events_delivered_total"] == 600 && metrics["onward_events_dropped_total"] == 0)
            // If the session of the delivering server ends, another server begins with the first event.
            #expect(
                endpoint.attempts.repeated.isEmpty || metrics["onward_sessions_lost_total"] > 0,
                "\(endpoint.attempts.repeated.count) events arrived twice")
        }
    }

    @Test("after eight failures there is one attempt at a time; the first success makes all events due")
    func oneAtATime() throws {
        let hold = Hold()
        let endpoint = try EventEndpoint { _ in
            hold.wait()
            return .status("500 No")
        }
        try endpoint.withServer { server in
            try server.store((0..<40).map { "/files/\($0)" })
            // No attempt has ended yet, so none is repeated before all events are known.
            hold.release()
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 8 }
            _ = endpoint.takeMaxRunning()
            let first = endpoint.attempts.count
            endpoint.awaitAttempts(first + 2, within: .seconds(120))
            #expect(endpoint.takeMaxRunning() == 1)
            // Up to three attempts ran during the eighth failure. Then each attempt is for an event that was not tried.
            // If the session of the delivering server ends, another server begins with the first event.
            let isUndisturbed = try server.metrics()["onward_sessions_lost_total"] == 0
            #expect(endpoint.attempts.count <= 14 && endpoint.attempts.repeated.isEmpty || !isUndisturbed)
            endpoint.respond { _ in .status("200 OK") }
            // The pause before the next attempt doubles with each one.
            #expect(endpoint.awaitAccepted(40, within: .seconds(120)).count == 40)
        }
    }

    @Test("uploads do not wait for a receiver that hangs")
    func uploadsContinue() throws {
        let endpoint = try EventEndpoint { _ in .silence }
        try endpoint.withServer(options: ["--durability", "relaxed"]) { server in
            try server.store((0..<300).map { "/files/\($0)" })
            // No attempt has ended yet, so no upload has waited for one.
            let metrics = try server.metrics { $0[Self.waiting] == 300 }
            #expect(metrics["onward_events_delivered_total"] == 0)
            #expect(metrics["onward_events_failed_attempts_total"] == 0 && endpoint.attempts.count <= 4)
        }
    }

    @Test("more events than max= are dropped, the oldest first, counted and logged")
    func tooMany() throws {
        let endpoint = try EventEndpoint { _ in .silence }
        endpoint.origin.stop()
        try endpoint.withServer("max=20", options: ["--durability", "relaxed"]) { server in
            try server.store((0..<100).map { "/files/\($0)" })
            let metrics = try server.metrics { $0["onward_events_dropped_total"] >= 80 && $0[Self.waiting] <= 20 }
            #expect(metrics["onward_events_dropped_total"] == 80 && metrics[Self.waiting] == 20)
            #expect(server.log.contains("events were dropped without a delivery, because they were too old or "))
            endpoint.respond { _ in .status("200 OK") }
            try endpoint.origin.restart()
            let accepted = endpoint.awaitAccepted(20)
            #expect(Set(accepted.map(\.data.target)) == Set((80..<100).map { "/files/\($0)" }))
            _ = try server.metrics { $0[Self.waiting] == 0 }
            #expect(endpoint.accepted.count == 20)
        }
    }

    @Test("events older than keep= are dropped")
    func tooOld() throws {
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try endpoint.withServer("retry=1s", "keep=2s") { server in
            try server.store(["/files/a", "/files/b"])
            let metrics = try server.metrics { $0["onward_events_dropped_total"] == 2 }
            #expect(metrics[Self.waiting] == 0 && metrics[Self.setAside] == 0)
            try server.events("list").expectOutput("")
        }
    }

    @Test("events of other uploads do not wait for many rejected events, which are tried again until they are accepted")
    func manyRejected() throws {
        let endpoint = try EventEndpoint { event in
            .status(event.data.target.hasPrefix("/files/bad") ? "400 No" : "200 OK")
        }
        try endpoint.withServer(options: ["--durability", "relaxed"]) { server in
            // The server has 1024 events in memory.
            try server.store((0..<1500).map { "/files/bad-\($0)" })
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1024 }
            try server.store((0..<5).map { "/files/good-\($0)" })
            #expect(
                endpoint.awaitAccepted(5, within: .seconds(60)).allSatisfy { $0.data.target.hasPrefix("/files/good") })
            // Each rejected event is tried.
            #expect(eventually { Set(endpoint.attempts.map(\.id)).count == 1505 })
            endpoint.respond { _ in .status("200 OK") }
            #expect(endpoint.awaitAccepted(1505, within: .seconds(120)).repeated.isEmpty)
            _ = try server.metrics { $0[Self.waiting] == 0 && $0[Self.setAside] == 0 }
        }
    }

    @Test(
        "the time during which the server does not run does not drop events, because they were not tried after the start",
        .enabled(if: PreloadedLibrary.compiler != nil))
    func longDowntime() throws {
        let clock = try ShiftedClock()
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try withServer(options: endpoint.options(["retry=60s", "keep=60s"]), environment: clock.environment) { server in
            try server.store(["/files/a", "/files/b"])
            #expect(try server.stop() == .exited(0))
            try clock.shift(by: 30 * 86_400)
            try server.restart()
            // The limits are checked at the start and every two seconds.
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 3 }
            let metrics = try server.metrics()
            #expect(metrics["onward_events_dropped_total"] == 0 && metrics[Self.waiting] == 2)
            try endpoint.origin.restart()
            #expect(endpoint.awaitAccepted(2).count == 2)
        }
    }

    @Test("a wall clock that is set forward or back drops no event", .enabled(if: PreloadedLibrary.compiler != nil))
    func clock() throws {
        let clock = try ShiftedClock()
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try withServer(options: endpoint.options(["retry=60s", "keep=60s"]), environment: clock.environment) { server in
            try server.store(["/files/a"])
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1 }
            try clock.shift(by: 30 * 86_400)
            try server.store(["/files/b"])
            try clock.shift(by: -30 * 86_400)
            try server.store(["/files/c"])
            // Both limits are checked every two seconds.
            let checks = try server.metrics()["onward_events_failed_attempts_total"]
            let metrics = try server.metrics { $0["onward_events_failed_attempts_total"] >= checks + 3 }
            #expect(metrics["onward_events_dropped_total"] == 0 && metrics[Self.waiting] == 3)
            #expect(metrics[Self.setAside] == 0)
            try endpoint.origin.restart()
            #expect(endpoint.awaitAccepted(3).count == 3)
        }
    }

    // MARK: onward events

    @Test("events that cannot be delivered are set aside, listed, retried and dropped while the server runs")
    func command() throws {
        let endpoint = try EventEndpoint { event in
            event.data.target.hasPrefix("/files/bad") ? .status("400 No") : .status("200 OK")
        }
        try endpoint.withServer("retry=1s", options: ["--durability", "relaxed"]) { server in
            let location = try server.begin(.v8, "/files/bad-order", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status == 201)
            try server.store(["/files/bad-1", "/files/bad-2", "/files/good"])
            _ = try server.metrics { $0[Self.setAside] == 4 && $0[Self.waiting] == 0 }
            #expect(server.log.contains("events were set aside, because they could not be delivered to "))
            // The second event of an upload follows when the first one was set aside.
            #expect(endpoint.attempts.kinds(of: "/files/bad-order") == ["created", "completed"])
            let list = try server.events("list")
            let lines = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(list.ending == .exited(0) && lines.count == 4, "\(list.output)")
            #expect(lines.allSatisfy { $0.count == 7 && $0[2] == "set-aside" && $0[5] == "PUT" })
            #expect(lines.map { $0[6] } == ["bad-order", "bad-order", "bad-1", "bad-2"].map { "/files/\($0)" })
            let objects = try server.events("list", "--json").output.split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: String]
            }
            #expect(objects.map { $0?["event"] } == lines.map { $0[0] })

            let calls = endpoint.attempts.count
            endpoint.respond { _ in .status("200 OK") }
            try server.events("drop", lines[3][0]).expectOutput("events dropped: 1\n")
            try server.events("retry", String(lines[2][0].prefix(12))).expectOutput("events retried: 1\n")
            #expect(endpoint.awaitAccepted(2).last?.data.target == "/files/bad-1")
            #expect(endpoint.attempts.count == calls + 1)
            try server.events("retry", "--all").expectOutput("events retried: 2\n")
            #expect(endpoint.awaitAccepted(4).kinds(of: "/files/bad-order").sorted() == ["completed", "created"])
            _ = try server.metrics { $0[Self.setAside] == 0 && $0[Self.waiting] == 0 }
            try server.events("list").expectOutput("")
            try server.events("drop", "--all").expectOutput("events dropped: 0\n")
            let unknown = try server.events("retry", "0123456789abcdef")
            #expect(unknown.ending == .exited(66) && unknown.output.contains("no event '0123456789abcdef'"))
            #expect(endpoint.accepted.repeated.isEmpty)
        }
    }

    @Test("many events that are retried arrive once each")
    func manyRetried() throws {
        let endpoint = try EventEndpoint { _ in .status("400 No") }
        try endpoint.withServer("retry=1s", options: ["--durability", "relaxed"]) { server in
            try server.store((0..<700).map { "/files/\($0)" })
            _ = try server.metrics { $0[Self.setAside] == 700 }
            let before = endpoint.attempts.count
            // The outbox is read for retried events every two seconds, so some of them were just delivered then.
            endpoint.respond { _ in
                SystemClock.pause(nanoseconds: 10_000_000)
                return .status("200 OK")
            }
            #expect(try server.events("retry", "--all").output == "events retried: 700\n")
            #expect(endpoint.awaitAccepted(700, within: .seconds(60)).count == 700)
            _ = try server.metrics { $0[Self.waiting] == 0 && $0[Self.setAside] == 0 }
            #expect(endpoint.attempts.count == before + 700)
        }
    }

    @Test("an event that is dropped while it waits is not sent")
    func dropped() throws {
        let endpoint = try EventEndpoint()
        endpoint.origin.stop()
        try endpoint.withServer { server in
            try server.store(["/files/a", "/files/b"])
            let list = try server.events("list").output.split(separator: "\n")
            try server.events("drop", String(try #require(list.first?.split(separator: " ").first)))
                .expectOutput("events dropped: 1\n")
            try endpoint.origin.restart()
            #expect(endpoint.awaitAccepted(1).map(\.data.target) == ["/files/b"])
            _ = try server.metrics { $0[Self.waiting] == 0 }
            #expect(endpoint.attempts.count == 1)
        }
    }
}

extension OnwardRun {
    /// Expects a successful run with this output.
    func expectOutput(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ending == .exited(0) && output == text, "\(ending): \(output)", sourceLocation: sourceLocation)
    }
}
