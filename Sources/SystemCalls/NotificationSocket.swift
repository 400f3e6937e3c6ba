import Glibc

/// The datagram socket on which a service manager receives the state of a service (sd_notify(3)): a path in the file
/// system, or an abstract name.
package final class NotificationSocket: Sendable {
    private let descriptor: FileDescriptor
    private let name: [UInt8]

    /// - Parameter address: a path that begins with `/`, or `@` followed by the name of an abstract socket.
    /// - Throws: `EINVAL` for any other address, `ENAMETOOLONG` if the address is too long.
    package init(address: String) throws(Errno) {
        var name = Array(address.utf8)
        guard let first = name.first, name.count > 1, first == UInt8(ascii: "/") || first == UInt8(ascii: "@") else {
            throw .invalidArgument
        }
        guard name.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { throw .nameTooLong }
        if first == UInt8(ascii: "@") { name[0] = 0 }
        self.name = name
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = FileDescriptor(owning: try retryingOnInterrupt { socket(AF_UNIX, type, 0) })
        // A manager that does not read must not block the service forever.
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor.rawValue, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends one message; waits up to 5 s while the manager's queue is full.
    /// - Throws: `Errno` of sendto(2): `ENOENT` or `ECONNREFUSED` if no process listens.
    package func send(_ message: String) throws(Errno) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // The length argument determines where an abstract name ends. The socket is not connected, because the manager
        // may be restarted between two messages.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let bytes = Array(message.utf8)
        _ = try retryingOnInterrupt {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(descriptor.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
                }
            }
        }
    }
}
