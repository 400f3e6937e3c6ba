import Glibc
import SystemCalls

/// Ports for programs whose port must be fixed before they start, or that listen on the same port after a restart.
///
/// These ports are outside the range from which the system chooses the ports of outgoing connections and of `bind` with
/// port 0, because another program could get a port of that range between two binds.
package enum FixedPort {
    /// Unix sockets whose abstract names (unix(7)) contain the ports that `next()` has returned. While this process
    /// runs, these sockets prevent other test processes on this machine from choosing the same ports.
    private static let reserved = Monitor<[FileDescriptor]>([])

    /// A port without a listener. Each call returns another port.
    package static func next() throws -> UInt16 {
        for _ in 0..<1000 {
            let port = UInt16.random(in: 12_000...19_999)
            guard let reservation = try reserve(port), ListeningSocket.isFree(port: port) else { continue }
            reserved.withLock { $0.append(reservation) }
            return port
        }
        throw TestFailure("no free port")
    }

    /// Reserves a port; returns `nil` if the port is reserved already.
    private static func reserve(_ port: UInt16) throws(Errno) -> FileDescriptor? {
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw Errno.current }
        let descriptor = FileDescriptor(owning: number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The first byte of an abstract name is NUL. The bytes after the number belong to the name too.
        withUnsafeMutableBytes(of: &address.sun_path) { path in
            UnsafeMutableRawBufferPointer(rebasing: path.dropFirst()).copyBytes(
                from: Array("onward-test-port-\(port)".utf8))
        }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        return isBound ? descriptor : nil
    }
}
