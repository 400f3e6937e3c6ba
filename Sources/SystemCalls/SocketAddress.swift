import Glibc

/// The address of a listening socket: a TCP address or a path in the file system.
public enum SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// A host name or numeric address, and a port; with port 0 the system chooses the port.
    case tcp(host: String, port: UInt16)
    /// The path of a Unix socket.
    case unix(path: String)

    /// The address as in `--listen`: `HOST:PORT`, with brackets around an IPv6 address, or `unix:PATH`.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// Explains an error of ``ConnectedSocket`` or ``ListeningSocket`` with this address: both throw `EINVAL` for an
    /// unknown host.
    package func explanation(of error: Errno) -> String {
        if case .tcp(let host, _) = self, error == .invalidArgument { return "the host \(host) cannot be found" }
        return "\(error)"
    }
}

/// A listening socket. It does not close its descriptor: the caller of ``release()`` must close it.
package final class ListeningSocket: Sendable {
    package let address: SocketAddress
    /// Whether only processes on this machine can connect to the socket.
    package let isLocal: Bool
    private let descriptor: Int32

    /// Binds the address and listens.
    /// - Throws: the error of the call that failed (`EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES`, …); `EINVAL` for an
    ///   unknown host.
    package init(_ address: SocketAddress, backlog: Int32 = 4096) throws(Errno) {
        switch address {
        case .tcp(let host, let port):
            let bound = try Self.bindTCP(host: host, port: port)
            descriptor = bound.descriptor
            self.address = .tcp(host: host, port: bound.port)
            isLocal = bound.isLoopback
        case .unix(let path):
            descriptor = try Self.bindUnix(path: path)
            self.address = address
            isLocal = true
        }
        guard listen(descriptor, backlog) == 0 else {
            let error = Errno.current
            close(descriptor)
            throw error
        }
    }

    init(listening descriptor: Int32, at address: SocketAddress, isLocal: Bool) {
        self.descriptor = descriptor
        self.address = address
        self.isLocal = isLocal
    }

    /// The descriptor, which the caller owns and closes.
    package func release() -> Int32 { descriptor }

    /// Whether a server could listen on this port of 127.0.0.1.
    package static func isFree(port: UInt16) -> Bool {
        // The socket does not listen: a process that is started at this moment inherits it until execve(2), and would
        // accept connections.
        guard let bound = try? bindTCP(host: "127.0.0.1", port: port) else { return false }
        close(bound.descriptor)
        return true
    }

    private static func bindTCP(
        host: String, port: UInt16
    ) throws(Errno) -> (descriptor: Int32, port: UInt16, isLoopback: Bool) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let first = list else { throw .invalidArgument }
        defer { freeaddrinfo(list) }
        let descriptor = socket(
            first.pointee.ai_family, first.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .current }
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 else {
            let error = Errno.current
            close(descriptor)
            throw error
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        _ = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        let bound = portAndLoopback(of: &storage)
        return (descriptor, bound.port, bound.isLoopback)
    }

    private static func portAndLoopback(of storage: inout sockaddr_storage) -> (port: UInt16, isLoopback: Bool) {
        withUnsafePointer(to: &storage) { pointer in
            if Int32(pointer.pointee.ss_family) == AF_INET6 {
                return pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                    var bytes = address.pointee.sin6_addr
                    let isLoopback = withUnsafeBytes(of: &bytes) {
                        $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1
                    }
                    return (UInt16(bigEndian: address.pointee.sin6_port), isLoopback)
                }
            }
            return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                let isLoopback = UInt32(bigEndian: address.pointee.sin_addr.s_addr) >> 24 == 127
                return (UInt16(bigEndian: address.pointee.sin_port), isLoopback)
            }
        }
    }

    private static func bindUnix(path: String) throws(Errno) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw .nameTooLong
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .current }
        func call(_ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, on target: Int32) -> Int32 {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    function(target, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        var result = call({ bind($0, $1, $2) }, on: descriptor)
        if result != 0 && errno == EADDRINUSE {
            // A socket file that refuses connections belonged to a server that was killed, so it is removed. Any other
            // file may be in use.
            let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            let answered = call({ connect($0, $1, $2) }, on: probe)
            let refused = answered != 0 && errno == ECONNREFUSED
            close(probe)
            if refused && isSocket(path) {
                unlink(path)
                result = call({ bind($0, $1, $2) }, on: descriptor)
            } else {
                errno = EADDRINUSE
            }
        }
        guard result == 0 else {
            let error = Errno.current
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Whether the path is a socket, and not a symbolic link to one.
    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}

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
            let (port, isLoopback) = Self.portAndLoopback(of: &storage)
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

/// A version of the Internet Protocol.
package enum InternetProtocol: Sendable, Hashable { case version4, version6 }
