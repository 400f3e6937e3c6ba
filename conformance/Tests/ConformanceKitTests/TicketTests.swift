import Foundation
import Testing

@testable import ConformanceKit

@Suite("Servers that give tickets for other sessions")
struct TicketTests {
    private final class Unobserved: WireObserver, Sendable {
        func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {}
        func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {}
        func observe(anomaly: String, in transcript: Transcript) {}
    }

    @Test("what TLS brings without content does not keep a request back", .timeLimit(.minutes(5)))
    func tickets() async throws {
        let identity = try TestIdentity()
        let status = try await onThread { () -> Int in
            let server = try SubjectProcess(
                command: "exec openssl s_server -accept 127.0.0.1:{port} -cert '\(identity.certificate)' "
                    + "-key '\(identity.key)' -www -quiet")
            try server.start()
            let endpoint = try #require(
                Endpoint("https://127.0.0.1:\(server.port)/", trusting: .authorities(path: identity.certificate)))
            let connection = try RawConnection(
                endpoint, timeout: .seconds(20), transcript: Transcript(), observer: Unobserved())
            // Its tickets come right after the handshake, and lie there.
            Deadline.pause(.milliseconds(300))
            try connection.send(Request("GET", "/"), stoppingAtResponse: true)
            return try connection.readResponse().status
        }
        #expect(status == 200)
        withExtendedLifetime(identity) {}
    }
}
