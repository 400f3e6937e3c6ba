import CLinux
import Glibc

/// One end of a stream connection, in non-blocking mode. Every operation has a deadline in nanoseconds of the monotonic
/// clock (``SystemClock/monotonicNanoseconds()``), and throws `ETIMEDOUT` after it.
package final class ConnectedSocket: Sendable {
    private let descriptor: FileDescriptor

    /// Tries the addresses of the host, one after the other, until a connection is established (connect(2)).
    /// - Throws: the error of the last attempt; `EINVAL` for an unknown host.
    package init(_ address: SocketAddress, until deadline: Int64) throws(Errno) {
        switch address {
        case .tcp(let host, let port):
            descriptor = try Self.connectTCP(host: host, port: port, until: deadline)
            var one: Int32 = 1
            setsockopt(
                descriptor.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        case .unix(let path):
            descriptor = try Self.connectUnix(path: path, until: deadline)
        }
    }

    package init(owning descriptor: FileDescriptor) { self.descriptor = descriptor }

    /// Creates two connected Unix sockets (socketpair(2)). The second result is a descriptor that the caller owns.
    package static func pair() throws(Errno) -> (ConnectedSocket, Int32) {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        var descriptors: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutablePointer(to: &descriptors) { pointer in
            pointer.withMemoryRebound(to: Int32.self, capacity: 2) { socketpair(AF_UNIX, type, 0, $0) }
        }
        guard result == 0 else { throw .current }
        return (ConnectedSocket(owning: FileDescriptor(owning: descriptors.0)), descriptors.1)
    }

    /// Sets the size of the receive buffers of connections that arrive from now on (`SO_RCVBUF` in socket(7)). The
    /// kernel doubles the number.
    package static func limitReceiveBuffers(of listener: FileDescriptor, to bytes: Int32) {
        var bytes = bytes
        setsockopt(listener.rawValue, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Accepts the next connection to a listening socket (accept(2)).
    /// - Throws: `ETIMEDOUT` if no connection arrives before the deadline.
    package static func accept(from listener: FileDescriptor, until deadline: Int64) throws(Errno) -> ConnectedSocket {
        while true {
            _ = try wait(listener, for: POLLIN, until: deadline)
            let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let accepted = accept4(listener.rawValue, nil, nil, flags)
            guard accepted < 0 else {
                var one: Int32 = 1
                setsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
                return ConnectedSocket(owning: FileDescriptor(owning: accepted))
            }
            switch Errno.current {
            case .interrupted, .wouldBlock: continue
            case let error where error.rawValue == ECONNABORTED: continue
            case let error: throw error
            }
        }
    }

    /// Sends bytes and returns how many of them the kernel accepted, at least one.
    /// - Throws: `EPIPE` or `ECONNRESET` if the peer has closed the connection.
    package func send(_ bytes: ArraySlice<UInt8>, until deadline: Int64) throws(Errno) -> Int {
        while true {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count >= 0 { return count }
            switch Errno.current {
            case .interrupted: continue
            case .wouldBlock: _ = try wait(for: POLLOUT, until: deadline)
            case let error: throw error
            }
        }
    }

    /// Waits for input, stores it in `buffer` and returns the number of bytes; 0 once the peer has ended its output.
    package func receive(into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64) throws(Errno) -> Int {
        while true {
            let count = recv(descriptor.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return count }
            switch Errno.current {
            case .interrupted: continue
            case .wouldBlock: _ = try wait(for: POLLIN, until: deadline)
            case let error: throw error
            }
        }
    }

    /// The operations that are possible without waiting.
    package struct Readiness: Sendable {
        package let hasInput: Bool
        package let isWritable: Bool

        package init(hasInput: Bool, isWritable: Bool) {
            self.hasInput = hasInput
            self.isWritable = isWritable
        }
    }

    /// Waits until input has arrived or output can be sent.
    package func awaitReadiness(until deadline: Int64) throws(Errno) -> Readiness {
        let events = try wait(for: POLLIN | POLLOUT, until: deadline)
        return Readiness(
            hasInput: events & (POLLIN | POLLHUP | POLLERR) != 0, isWritable: events & POLLOUT != 0)
    }

    /// Waits until input, or the end of the input, has arrived.
    package func awaitInput(until deadline: Int64) throws(Errno) { _ = try wait(for: POLLIN, until: deadline) }

    /// Waits until output can be sent.
    package func awaitOutput(until deadline: Int64) throws(Errno) { _ = try wait(for: POLLOUT, until: deadline) }

    /// The descriptor, for a TLS session on this socket. This object owns and closes it.
    package var rawValue: Int32 { descriptor.rawValue }

    /// Ends the output; input is still received (shutdown(2)).
    package func endOutput() { shutdown(descriptor.rawValue, Int32(SHUT_WR)) }

    /// Makes the kernel reset the connection when this object closes it. Output that was not delivered is discarded
    /// (`SO_LINGER` of socket(7)).
    package func resetOnClose() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor.rawValue, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    // MARK: - Connecting

    private static func connectTCP(host: String, port: UInt16, until deadline: Int64) throws(Errno) -> FileDescriptor {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0 else { throw .invalidArgument }
        defer { freeaddrinfo(list) }
        var error = Errno.invalidArgument
        var next = list
        while let candidate = next?.pointee {
            do throws(Errno) {
                let descriptor = try open(candidate.ai_family)
                try connect(descriptor, candidate.ai_addr, candidate.ai_addrlen, until: deadline)
                return descriptor
            } catch let failure {
                error = failure
            }
            next = candidate.ai_next
        }
        throw error
    }

    private static func connectUnix(path: String, until deadline: Int64) throws(Errno) -> FileDescriptor {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .nameTooLong }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = try open(AF_UNIX)
        let error = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Errno? in
                do throws(Errno) {
                    try connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size), until: deadline)
                    return nil
                } catch {
                    return error
                }
            }
        }
        if let error { throw error }
        return descriptor
    }

    private static func open(_ family: Int32) throws(Errno) -> FileDescriptor {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        return FileDescriptor(owning: try retryingOnInterrupt { socket(family, type, 0) })
    }

    private static func connect(
        _ descriptor: FileDescriptor, _ address: UnsafePointer<sockaddr>, _ length: socklen_t, until deadline: Int64
    ) throws(Errno) {
        if Glibc.connect(descriptor.rawValue, address, length) == 0 { return }
        let error = Errno.current
        guard error.rawValue == EINPROGRESS || error == .interrupted else { throw error }
        _ = try wait(descriptor, for: POLLOUT, until: deadline)
        var result: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor.rawValue, SOL_SOCKET, SO_ERROR, &result, &size)
        if result != 0 { throw Errno(rawValue: result) }
    }

    // MARK: - Waiting

    private func wait(for events: Int32, until deadline: Int64) throws(Errno) -> Int32 {
        try Self.wait(descriptor, for: events, until: deadline)
    }

    private static func wait(
        _ descriptor: FileDescriptor, for events: Int32, until deadline: Int64
    ) throws(Errno) -> Int32 {
        var entry = pollfd(fd: descriptor.rawValue, events: Int16(events), revents: 0)
        while true {
            let remaining = deadline - SystemClock.monotonicNanoseconds()
            guard remaining > 0 else { throw .timedOut }
            let count = poll(&entry, 1, Int32(clamping: (remaining + 999_999) / 1_000_000))
            if count > 0 { return Int32(entry.revents) }
            if count < 0 && errno != EINTR { throw .current }
        }
    }
}
