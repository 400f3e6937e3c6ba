import Glibc

extension ListeningSocket {
    /// Takes over a listening socket that another process has bound: an IPv4 or IPv6 socket, or a Unix socket with a
    /// path. The descriptor is closed on exec from now on. Other processes that have the socket open keep listening
    /// when this process closes it.
    /// - Throws: `EBADF` if the descriptor is not open, `ENOTSOCK` if it is not a socket, `EINVAL` if the socket does
    ///   not listen or is not a stream socket, `EAFNOSUPPORT` for another address family or a Unix socket without a
    ///   path.
    package convenience init(inherited descriptor: Int32) throws(Errno) {
        guard try Self.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue),
            try Self.option(SO_ACCEPTCONN, of: descriptor) != 0
        else { throw .invalidArgument }
        _ = try retryingOnInterrupt { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0 else { throw .current }
        switch Int32(storage.ss_family) {
        case AF_INET, AF_INET6:
            let (port, isLoopback) = Self.portAndScope(of: &storage)
            let address = SocketAddress.tcp(host: try Self.numericHost(of: &storage, length), port: port)
            self.init(listening: descriptor, at: address, isLocal: isLoopback)
        case AF_UNIX:
            self.init(listening: descriptor, at: .unix(path: try Self.path(in: &storage)), isLocal: true)
        default:
            throw Errno(rawValue: EAFNOSUPPORT)
        }
    }

    private static func option(_ name: Int32, of descriptor: Int32) throws(Errno) -> Int32 {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        _ = try retryingOnInterrupt { getsockopt(descriptor, SOL_SOCKET, name, &value, &size) }
        return value
    }

    private static func numericHost(of storage: inout sockaddr_storage, _ length: socklen_t) throws(Errno) -> String {
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let result = withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getnameinfo($0, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
            }
        }
        guard result == 0 else { throw .invalidArgument }
        return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func path(in storage: inout sockaddr_storage) throws(Errno) -> String {
        // The path follows the family, which has two bytes. An abstract name begins with NUL. If the socket has no
        // name, nothing follows the family.
        let path = withUnsafeBytes(of: &storage) { bytes in
            String(decoding: bytes.dropFirst(2).prefix { $0 != 0 }, as: UTF8.self)
        }
        guard !path.isEmpty else { throw Errno(rawValue: EAFNOSUPPORT) }
        return path
    }
}
