import Glibc
import TestSupport
import Testing

@testable import SystemCalls

@Suite("Sockets that are shared with other processes", .timeLimit(.minutes(15)))
struct InheritedSocketTests {
    private static func soon() -> Int64 { SystemClock.monotonicNanoseconds() + 10_000_000_000 }

    @Test("An inherited socket has its address and locality, and is closed on exec")
    func addresses() throws {
        for (address, isLocal) in [
            (SocketAddress.tcp(host: "127.0.0.1", port: 0), true), (.tcp(host: "0.0.0.0", port: 0), false),
        ] {
            let bound = try ListeningSocket(address)
            let descriptor = bound.release()
            defer { close(descriptor) }
            _ = fcntl(descriptor, F_SETFD, 0)
            let inherited = try ListeningSocket(inherited: descriptor)
            #expect(inherited.address == bound.address)
            #expect(inherited.isLocal == isLocal)
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
        }
        let directory = try TemporaryDirectory()
        let path = directory.path + "/socket"
        let descriptor = try ListeningSocket(.unix(path: path)).release()
        defer { close(descriptor) }
        let inherited = try ListeningSocket(inherited: descriptor)
        #expect(inherited.address == .unix(path: path))
        #expect(inherited.isLocal)
        _ = try ConnectedSocket(inherited.address, until: Self.soon())
    }

    @Test("A descriptor that cannot accept connections is refused")
    func refusals() throws {
        let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        let silent = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let file = open("/dev/null", O_RDONLY)
        defer { for descriptor in [datagrams, silent, file] { close(descriptor) } }
        #expect(throws: Errno.invalidArgument) { try ListeningSocket(inherited: datagrams) }
        #expect(throws: Errno.invalidArgument) { try ListeningSocket(inherited: silent) }
        #expect(throws: Errno(rawValue: ENOTSOCK)) { try ListeningSocket(inherited: file) }
        #expect(throws: Errno.badDescriptor) { try ListeningSocket(inherited: 1_000_000) }
    }

    @Test(
        "Messages reach the socket of a service manager with a path or with an abstract name", arguments: [false, true])
    func notifications(isAbstract: Bool) throws {
        let directory = try TemporaryDirectory()
        let name = isAbstract ? "@" + directory.path : directory.path + "/socket"
        let manager = FileDescriptor(owning: socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if isAbstract { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(manager.rawValue, $0, socklen_t(2 + bytes.count))
            }
        }
        try #require(bound == 0)
        try NotificationSocket(address: name).send("READY=1\nSTATUS=ä")
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = recv(manager.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        #expect(String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self) == "READY=1\nSTATUS=ä")
    }

    @Test("Sending fails for an invalid address and without a service manager")
    func withoutManager() throws {
        for address in ["", "/", "relative", "vsock:2:1"] {
            #expect(throws: Errno.invalidArgument) { try NotificationSocket(address: address) }
        }
        #expect(throws: Errno.nameTooLong) {
            try NotificationSocket(address: "/" + String(repeating: "x", count: 200))
        }
        let withoutManager = try NotificationSocket(address: "/nonexistent/notify")
        #expect(throws: Errno.noSuchFile) { try withoutManager.send("READY=1") }
    }
}
