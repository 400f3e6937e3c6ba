import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

@Suite("TLS session tickets")
struct TicketTests {
    @Test("TLS messages without data do not delay a request", .timeLimit(.minutes(5)))
    func tickets() async throws {
        let identity = try SelfSignedCertificate(.ecdsa)
        let status = try await onThread { () -> Int in
            let server = try SubjectProcess(
                command: "exec openssl s_server -accept 127.0.0.1:{port} -cert '\(identity.certificate)' "
                    + "-key '\(identity.key)' -www -quiet")
            try server.start()
            let endpoint = try #require(
                Endpoint("https://127.0.0.1:\(server.port)/", trusting: .authorities(path: identity.certificate)))
            let connection = try RawConnection(
                endpoint, timeout: .seconds(60), transcript: Transcript(), observer: Unobserved.shared)
            // The tickets arrive right after the handshake, and have not been read.
            let deadline = Deadline(in: .seconds(60))
            while try !hasUnreadBytes(from: server.port), !deadline.isOver { Deadline.pause(.milliseconds(5)) }
            #expect(!deadline.isOver)
            try connection.send(Request("GET", "/"), stoppingAtResponse: true)
            defer { withExtendedLifetime(server) {} }
            return try connection.readResponse().status
        }
        #expect(status == 200)
        withExtendedLifetime(identity) {}
    }

    /// Returns whether a connection to this port has unread bytes (`rx_queue` of proc_net_tcp(5)).
    private func hasUnreadBytes(from port: UInt16) throws -> Bool {
        let peer = ":" + String(Int(port) + 0x10000, radix: 16, uppercase: true).suffix(4)
        let bytes = try FileDescriptor.open("/proc/net/tcp", [.readOnly]).content(atMost: 64 << 20)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains { line in
            let columns = line.split(separator: " ")
            guard columns.count > 4, columns[2].hasSuffix(peer), columns[3] == "01" else { return false }
            return columns[4].split(separator: ":").last.flatMap { Int($0, radix: 16) } ?? 0 > 0
        }
    }
}
