import CLinux
import Glibc

/// Writes to a connected socket whose descriptor another object owns.
package struct SocketOutput: Sendable {
    private let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    package enum Outcome: Sendable, Hashable {
        /// The kernel has accepted all bytes.
        case sent
        /// The kernel has accepted no byte, because the peer does not read.
        case notWritable
        /// Only some bytes were sent, or the connection has failed. Nothing more may be written.
        case broken
    }

    /// Sends all of `bytes`. Waits at most `timeout` milliseconds until the first byte can be sent. After the first
    /// byte, the limit of each wait is `timeout` or one second, whichever is longer.
    ///
    /// - Parameter isFollowed: whether more output follows immediately. The kernel then sends both together; if nothing
    ///   follows within 200 ms, it sends these bytes alone (MSG_MORE of send(2)).
    package func send(_ bytes: [UInt8], timeout: Int32, isFollowed: Bool = false) -> Outcome {
        guard isWritable(within: timeout) else { return .notWritable }
        var sent = 0
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT) | (isFollowed ? Int32(MSG_MORE) : 0)
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, flags)
            }
            if count > 0 {
                sent += count
            } else if count < 0 && errno == EINTR {
                continue
            } else if count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) {
                if sent == 0 { return .notWritable }
                guard isWritable(within: max(timeout, 1000)) else { return .broken }
            } else {
                return .broken
            }
        }
        return .sent
    }

    /// Makes the kernel send buffered output now, even if the socket is corked (TCP_NODELAY of tcp(7)).
    package func push() {
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The numeric address of the peer, without its port; `nil` on a Unix socket (getpeername(2)).
    package var peerAddress: String? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getpeername(descriptor, address, &length) == 0 ? Self.numericHost(of: address, length: length) : nil
            }
        }
    }

    /// The numeric address in a socket address, without its port; `nil` for a Unix socket.
    package static func numericHost(of address: UnsafePointer<sockaddr>, length: socklen_t) -> String? {
        guard Int32(address.pointee.sa_family) != AF_UNIX else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { text in
            guard let start = text.baseAddress,
                getnameinfo(address, length, start, socklen_t(text.count), nil, 0, Int32(NI_NUMERICHOST)) == 0
            else { return nil }
            return String(cString: start)
        }
    }

    /// Ends the output; input is still received.
    package func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Shuts the connection down in both directions. The owner of the descriptor then receives the end of the input,
    /// and closes the descriptor.
    package func endConnection() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Resets a TCP connection, so that the peer gets an error instead of a regular end. connect(2) to AF_UNSPEC does
    /// that while the descriptor stays open. This function has no effect on a Unix socket.
    package func resetConnection() {
        var address = sockaddr(sa_family: sa_family_t(AF_UNSPEC), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        _ = Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Makes the kernel reset the connection when its descriptor is closed. The kernel then frees unread output
    /// immediately, instead of keeping the output until the peer reads it.
    package func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads and discards input until the connection ends or `limit` bytes have arrived.
    package func discardInput(atMost limit: Int64) {
        var remaining = limit
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            while remaining > 0 {
                var entry = pollfd(descriptor: descriptor, events: POLLIN)
                if poll(&entry, 1, -1) < 0 && errno != EINTR { return }
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) { return }
                remaining -= Int64(max(0, count))
            }
        }
    }

    /// Whether the peer has ended its output or closed the connection.
    package var isEndedByPeer: Bool {
        var entry = pollfd(descriptor: descriptor, events: Int32(ONWARD_POLLRDHUP))
        return poll(&entry, 1, 0) == 1
    }

    /// The bytes that the peer has not acknowledged; `nil` if that is unknown.
    package func unacknowledgedBytes() -> Int32? { SocketState(descriptor: descriptor).unacknowledgedOutput }

    /// Milliseconds since data was last sent on a TCP connection; `nil` if that is unknown.
    package func millisecondsSinceLastSend() -> UInt32? {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { return nil }
        return info.tcpi_last_data_sent
    }

    /// The bytes that the peer's system has acknowledged on a TCP connection; `nil` if that is unknown.
    package func acknowledgedBytes() -> Int64? { transferredBytes()?.acknowledged }

    /// The bytes that the peer's system has acknowledged, and the bytes that were received from it, on a TCP
    /// connection; `nil` if the kernel does not count them.
    package func transferredBytes() -> (acknowledged: Int64, received: Int64)? {
        // The offset of `tcpi_bytes_acked`, which `tcpi_bytes_received` follows. The C library's tcp_info does not have
        // these fields. The kernel never moves a field of this structure (linux/tcp.h).
        let offset = 120
        return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { buffer in
            var length = socklen_t(buffer.count)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &length) == 0,
                Int(length) >= offset + 16
            else { return nil }
            return (
                Int64(clamping: buffer.load(fromByteOffset: offset, as: UInt64.self)),
                Int64(clamping: buffer.load(fromByteOffset: offset + 8, as: UInt64.self))
            )
        }
    }

    /// Waits for input, or for the end of the input; returns whether the socket has any.
    /// - Parameter deadline: monotonic nanoseconds.
    package func awaitInput(until deadline: Int64) -> Bool {
        var entry = pollfd(descriptor: descriptor, events: POLLIN)
        let nanoseconds = Int(max(0, deadline - SystemClock.monotonicNanoseconds()))
        var time = timespec(tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
        // Not poll(2): the server replaces that function by one that also reports input that was received before.
        return ppoll(&entry, 1, &time, nil) == 1
    }

    /// Waits at most `milliseconds` until the socket is writable; returns whether it is.
    package func isWritable(within milliseconds: Int32) -> Bool {
        var entry = pollfd(descriptor: descriptor, events: POLLOUT)
        while true {
            let result = poll(&entry, 1, milliseconds)
            if result < 0 && errno == EINTR { continue }
            return result == 1 && entry.revents & Int16(POLLOUT) != 0
        }
    }
}

extension pollfd {
    fileprivate init(descriptor: Int32, events: Int32) {
        self.init(fd: descriptor, events: Int16(events), revents: 0)
    }
}

/// The state of a connected socket whose descriptor another object owns, as the kernel reports it.
package struct SocketState: Sendable {
    private let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// Whether a read would return immediately: with bytes, the end of the input, or an error.
    package var hasInput: Bool {
        var entry = Glibc.pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// Whether the connection is open and no input has arrived.
    package var isQuiet: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0
            && (errno == EAGAIN || errno == EWOULDBLOCK)
    }

    /// Waits at most `milliseconds` until a read, or a write, would return immediately, even with an error.
    /// - Parameters:
    ///   - input: whether to wait for input or its end.
    ///   - output: whether to wait until output is possible.
    package func wait(forInput input: Bool, output: Bool, _ milliseconds: Int32) -> (input: Bool, output: Bool) {
        // Without an event the kernel would still report an error, at once and repeatedly.
        var entry = Glibc.pollfd(
            fd: input || output ? descriptor : -1, events: Int16((input ? POLLIN : 0) | (output ? POLLOUT : 0)),
            revents: 0)
        guard poll(&entry, 1, milliseconds) > 0 else { return (false, false) }
        let failed = Int32(entry.revents) & (POLLERR | POLLHUP | POLLNVAL) != 0
        return (
            input && (failed || Int32(entry.revents) & POLLIN != 0),
            output && (failed || Int32(entry.revents) & POLLOUT != 0)
        )
    }

    /// Bytes written that the peer has not acknowledged yet (SIOCOUTQ, tcp(7)); `nil` if that is unknown.
    package var unacknowledgedOutput: Int32? {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? count : nil
    }

    /// The local port; `nil` if the socket has none.
    package var localPort: UInt16? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0, [AF_INET, AF_INET6].contains(Int32(storage.ss_family)) else { return nil }
        // Both families have the port at the same offset.
        return withUnsafeBytes(of: &storage) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
    }

    /// Reads the bytes that have arrived, without waiting. Bytes can be available even after a reset.
    package func availableInput(atMost limit: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
            while filled < limit {
                let count = recv(
                    descriptor, buffer.baseAddress?.advanced(by: filled), limit - filled, Int32(MSG_DONTWAIT))
                if count > 0 { filled += count } else if count == 0 || errno != EINTR { return }
            }
        }
    }
}
