import SystemCalls
import Testing
import UploadStorage

@testable import Gateway

/// Tests deliveries from a store in memory to a function of the test.
@Suite("The delivery of events to a function")
struct EventDeliveryTests {
    private struct Failure: Error {}

    /// A delivery whose function records each attempt, and then calls `body`.
    private final class Fixture: Sendable {
        let plan = FaultPlan()
        /// The number of operations of the catalog before the start of the delivery.
        let initialSteps: Int
        let attempts = Monitor<[String]>([])
        /// The lines for the log.
        let notes = Monitor<[String]>([])
        private let catalog: MemoryCatalog
        private let store: UploadStore
        private let delivery: EventDelivery

        /// - Parameter body: receives the ID of the event, and the number of this attempt to deliver it.
        init(retryTime: Duration, _ body: @escaping @Sendable (String, Int) async throws -> Void) throws {
            catalog = MemoryCatalog(plan: plan)
            store = try UploadStore(catalog: catalog, area: MemoryBlobArea(), configuration: StoreConfiguration())
            var settings = EventSettings(
                .function { [attempts] event in
                    let number = attempts.withLock { attempts in
                        attempts.append(event.id)
                        return attempts.count { $0 == event.id }
                    }
                    try await body(event.id, number)
                })
            settings.retryTime = retryTime
            // An attempt ends only with the function, or when the delivery is closed.
            settings.timeout = .seconds(3600)
            initialSteps = plan.steps
            delivery = EventDelivery(settings, from: store) { [notes] _, line in
                notes.withLock { $0.append(line) }
            }
            try delivery.startBlocking()
        }

        func record(_ events: (id: String, upload: String)...) throws {
            let time = store.configuration.clock().wall / 1_000_000
            _ = try catalog.commit(
                .reporting(
                    .probe,
                    events.map { id, upload in
                        UploadEvent(
                            id: id, kind: .created, time: time, upload: upload, principal: "anna", method: "PUT",
                            target: "/files/x")
                    }))
        }

        func close() {
            delivery.close()
            store.close()
        }
    }

    /// Waits until the condition is met. The limit is reached only if it is never met.
    private func awaitCondition(
        sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + .seconds(600)
        while !condition() {
            try #require(ContinuousClock.now < deadline, sourceLocation: sourceLocation)
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    @Test("while an event cannot be set aside, the next event of its upload is not delivered")
    func failedSettingAside() async throws {
        let fixture = try Fixture(retryTime: .seconds(1)) { _, _ in throw Failure() }
        defer { fixture.close() }
        // The limits are checked before there are events, and again after two seconds.
        try await awaitCondition { fixture.plan.steps > fixture.initialSteps }
        try fixture.record(("first", "a"), ("second", "a"))
        fixture.plan.fail(.commit, with: .inputOutput)
        try await awaitCondition { !fixture.notes.withLock { $0.filter { $0.hasPrefix("the outbox") } }.isEmpty }
        let attempts = fixture.attempts.withLock { $0.count }
        try await awaitCondition { fixture.attempts.withLock { $0.count } > attempts }
        #expect(Set(fixture.attempts.withLock { $0 }) == ["first"])
    }

    @Test("the next attempt does not wait for the attempts of other events", arguments: 1...2)
    func simultaneous(_ run: Int) async throws {
        let fixture = try Fixture(retryTime: .seconds(3600)) { id, number in
            if id != "failing" { try await Task.sleep(for: .seconds(3600)) }
            if number == 1 { throw Failure() }
        }
        defer { fixture.close() }
        try fixture.record(("failing", "a"))
        try await awaitCondition { !fixture.notes.withLock { $0 }.isEmpty }
        // Three of the four threads of the delivery are occupied, probably with the one that has delivered the event.
        try fixture.record(("b", "b"), ("c", "c"), ("d", "d"))
        try await awaitCondition { fixture.attempts.withLock { $0.count { $0 == "failing" } } == 2 }
    }
}
