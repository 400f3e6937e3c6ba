import SystemCalls
import Testing
import UploadStorage

@testable import Gateway

@Suite("Receivers of events")
struct EventReceiverTests {
    private static let message = EventMessage(
        event: UploadEvent(
            id: "0f", kind: .created, time: 0, upload: "ab", principal: "anna", method: "PUT", target: "/files/x"),
        source: "onward", secrets: [], time: 0)

    @Test("a delivery that is canceled is not reported as one that took too long")
    func cancellation() throws {
        // The listener accepts no connection.
        let listener = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let receivers = [
            EventDestination.function { _ in try await Task.sleep(for: .seconds(3600)) },
            try EventDestination(parsing: "http://\(listener.address)/"),
        ]
        defer { withExtendedLifetime(listener) {} }
        for receiver in receivers {
            let attempt = receiver.receiver(timeout: .seconds(3600)).deliver(Self.message) { true }
            #expect(attempt == .failed("it was canceled"), "\(attempt)")
        }
    }

    @Test("a function that does not return in time is reported")
    func timeout() {
        let receiver = EventDestination.function { _ in try await Task.sleep(for: .seconds(3600)) }
            .receiver(timeout: .milliseconds(1))
        #expect(receiver.deliver(Self.message) { false } == .failed("the function did not return within 1 s"))
    }
}
