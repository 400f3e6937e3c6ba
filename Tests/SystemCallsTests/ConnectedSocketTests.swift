import Glibc
import Testing

@testable import SystemCalls

@Suite("Connected sockets", .timeLimit(.minutes(15)))
struct ConnectedSocketTests {
    private static func soon(_ milliseconds: Int64 = 10_000) -> Int64 {
        SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000
    }

    /// A connection over the loopback interface: our end, and the accepted descriptor.
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

    @Test("Bytes arrive, and so does the end of the peer's side")
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

    @Test("Silence ends with the deadline, in both directions")
    func deadlines() throws {
        let (socket, peer) = try Self.pair()
        #expect(throws: Errno.timedOut) { try Self.receive(socket, until: Self.soon(20)) }
        #expect(throws: Errno.timedOut) {
            // The peer reads nothing: sooner or later the buffers are full.
            let block = [UInt8](repeating: 0, count: 1 << 20)
            while true { _ = try socket.send(block[...], until: Self.soon(20)) }
        }
        withExtendedLifetime(peer) {}
    }

    @Test("A reset reaches the peer as one")
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

    @Test("Nobody listens, no such host, no such path")
    func refusals() throws {
        let listening = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        close(listening.release())
        #expect(throws: Errno(rawValue: ECONNREFUSED)) { try ConnectedSocket(listening.address, until: Self.soon()) }
        #expect(throws: Errno.invalidArgument) {
            try ConnectedSocket(.tcp(host: "no host", port: 1), until: Self.soon())
        }
        #expect(throws: Errno.noSuchFile) { try ConnectedSocket(.unix(path: "/nonexistent"), until: Self.soon()) }
    }
}
