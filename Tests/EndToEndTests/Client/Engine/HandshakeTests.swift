import ConformanceKit
import Foundation
import Glibc
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: TLS handshakes that do not end", .blocking)
struct HandshakeTests {
    /// A server that does not answer the first message of a handshake.
    /// - Parameter isCut: whether the server closes the connection after that message.
    private func server(isCut: Bool, _ connections: Counter) throws -> LoopbackListener {
        try LoopbackListener("handshake") { connection, _ in
            connections.next()
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
            defer { buffer.deallocate() }
            // The entire message is read: unread bytes would turn the close into a reset.
            _ = Glibc.read(connection.rawValue, buffer.baseAddress, buffer.count)
            if !isCut { LoopbackListener.awaitEnd(of: connection, within: .seconds(600)) }
        }
    }

    /// A server that sends its part of a handshake byte by byte.
    private func tricklingServer(_ connections: Counter) throws -> LoopbackListener {
        try LoopbackListener("handshake") { connection, _ in
            connections.next()
            // The first bytes of a record of 16 KiB that a ServerHello fills (RFC 8446 sections 4 and 5.1).
            let start: [UInt8] = [22, 3, 3, 0x40, 0, 2, 0, 0x3F, 0xFC, 3, 3]
            for byte in start + [UInt8](repeating: 7, count: 600) {
                guard send(connection.rawValue, [byte], 1, Int32(MSG_NOSIGNAL)) == 1 else { return }
                Deadline.pause(.milliseconds(100))
            }
        }
    }

    @Test(
        "a handshake whose bytes arrive one by one does not extend the timeout, and the message names the server",
        arguments: [true, false])
    func trickle(isUpload: Bool) async throws {
        let connections = Counter()
        let server = try tricklingServer(connections)
        let fixture = try UploadFixture {
            $0.retry.maxRetriesWithoutProgress = 0
            $0.stallTimeout = .seconds(1)
        }
        let uri = "https://127.0.0.1:\(server.port)/a"
        let start = ContinuousClock.now
        let error =
            isUpload
            ? await fixture.client.upload(TransferRequest(uri), from: DataSource(Data([1]))).failure()
            : await (try fixture.download(uri)).failure()
        #expect(error?.code == .timedOut, "\(String(describing: error))")
        #expect(error?.message.contains("127.0.0.1:\(server.port)") == true, "\(error?.message ?? "")")
        #expect(.now - start >= .seconds(0.9) && .now - start < .seconds(30))
        #expect(connections.value == 1)
    }

    @Test("a handshake that the server cuts is an interruption, and the client tries again", arguments: [true, false])
    func cut(isUpload: Bool) async throws {
        let connections = Counter()
        let server = try server(isCut: true, connections)
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 2 }
        let uri = "https://127.0.0.1:\(server.port)/a"
        let error =
            isUpload
            ? await fixture.client.upload(TransferRequest(uri), from: DataSource(Data([1]))).failure()
            : await (try fixture.download(uri)).failure()
        #expect(error?.code == .cannotConnect, "\(String(describing: error))")
        #expect(connections.value == 3)
    }

    @Test("the stall timeout applies to the handshake, too", arguments: [true, false])
    func stall(isUpload: Bool) async throws {
        let connections = Counter()
        let server = try server(isCut: false, connections)
        let fixture = try UploadFixture {
            $0.retry.maxRetriesWithoutProgress = 1
            $0.stallTimeout = .milliseconds(300)
        }
        let uri = "https://127.0.0.1:\(server.port)/a"
        let error =
            isUpload
            ? await fixture.client.upload(TransferRequest(uri), from: DataSource(Data())).failure()
            : await (try fixture.download(uri)).failure()
        #expect(error?.code == .timedOut, "\(String(describing: error))")
        // The client tried twice; the listener may count the second connection later.
        #expect(eventually { connections.value == 2 })
    }
}
