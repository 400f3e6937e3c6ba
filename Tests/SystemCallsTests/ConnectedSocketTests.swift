import Glibc
import TestSupport
import Testing

@testable import SystemCalls

@Suite("Connected sockets", .timeLimit(.minutes(15)))
struct ConnectedSocketTests {
    private static func soon(_ milliseconds: Int64 = 10_000) -> Int64 {
        SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000
    }

    /// A connection over the loopback interface: the connected socket and the accepted descriptor.
    private static func pair() throws -> (ConnectedSocket, FileDescriptor) {
        let listening = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let listener = FileDescriptor(owning: listening.release())
        let socket = try ConnectedSocket(listening.address, until: soon())
        let accepted = FileDescriptor(owning: accept(listener.rawValue, nil, nil))
        withExtendedLifetime(listener) {}
        return (socket, accepted)
    }

    private static func receive(_ socket: ConnectedSocket, until deadline: Int64) throws(Errno) -> Int {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 1)
        defer { buffer.deallocate() }
        return try socket.receive(into: buffer, until: deadline)
    }

    @Test("Bytes and the end of the output arrive in both directions")
    func exchange() throws {
        let (socket, peer) = try Self.pair()
        #expect(try socket.send(Array("hello".utf8)[...], until: Self.soon()) == 5)
        var received = [UInt8](repeating: 0, count: 10)
        #expect(read(peer.rawValue, &received, 10) == 5)
        #expect(write(peer.rawValue, "abc", 3) == 3)
        #expect(try Self.receive(socket, until: Self.soon()) == 3)
        #expect(try socket.awaitReadiness(until: Self.soon()).isWritable)
        shutdown(peer.rawValue, Int32(SHUT_WR))
        #expect(try Self.receive(socket, until: Self.soon()) == 0)
        socket.endOutput()
        #expect(read(peer.rawValue, &received, 10) == 0)
    }

    @Test("Sending and receiving end at the deadline if the peer does nothing")
    func deadlines() throws {
        let (socket, peer) = try Self.pair()
        #expect(throws: Errno.timedOut) { try Self.receive(socket, until: Self.soon(20)) }
        #expect(throws: Errno.timedOut) {
            // The peer reads nothing, so the buffers fill up.
            let block = [UInt8](repeating: 0, count: 1 << 20)
            while true { _ = try socket.send(block[...], until: Self.soon(20)) }
        }
        withExtendedLifetime(peer) {}
    }

    @Test("The peer receives a reset of the connection")
    func reset() throws {
        let peer: FileDescriptor
        do {
            let (socket, accepted) = try Self.pair()
            peer = accepted
            socket.resetOnClose()
        }
        var byte: UInt8 = 0
        #expect(read(peer.rawValue, &byte, 1) == -1 && errno == ECONNRESET)
    }

    @Test("A port with a listener is not free")
    func freePorts() throws {
        let listening = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let descriptor = FileDescriptor(owning: listening.release())
        guard case .tcp(_, let port) = listening.address else { return }
        #expect(!ListeningSocket.isFree(port: port))
        withExtendedLifetime(descriptor) {}
        #expect(try ListeningSocket.isFree(port: FixedPort.next()))
    }

    @Test("Connecting without a listener, to an invalid host or to a missing path fails")
    func refusals() throws {
        let free = SocketAddress.tcp(host: "127.0.0.1", port: try FixedPort.next())
        #expect(throws: Errno(rawValue: ECONNREFUSED)) { try ConnectedSocket(free, until: Self.soon()) }
        #expect(throws: Errno.invalidArgument) {
            try ConnectedSocket(.tcp(host: "no host", port: 1), until: Self.soon())
        }
        #expect(throws: Errno.noSuchFile) { try ConnectedSocket(.unix(path: "/nonexistent"), until: Self.soon()) }
        let unknown = SocketAddress.tcp(host: "no host", port: 1)
        #expect(unknown.explanation(of: .invalidArgument) == "the host no host cannot be found")
        #expect(unknown.explanation(of: .accessDenied) == "Permission denied (EACCES)")
    }
}
