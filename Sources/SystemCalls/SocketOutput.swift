import CLinux
import Glibc

/// Writing to a connected socket whose descriptor somebody else owns.
package struct SocketOutput: Sendable {
    private let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    package enum Outcome: Sendable, Hashable {
        /// Every byte was handed to the kernel.
        case sent
        /// No byte was: the peer does not read.
        case notWritable
        /// Some bytes went out, or the connection is gone: nothing more may be written.
        case broken
    }

    /// Sends all of `bytes`, waiting at most `timeout` milliseconds for the first byte to fit and as long again for the rest.
    package func send(_ bytes: [UInt8], timeout: Int32) -> Outcome {
        guard isWritable(within: timeout) else { return .notWritable }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
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

    /// Sends what the kernel holds back of what was written, even if the socket is corked (TCP_NODELAY of tcp(7)).
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

    /// Tells the peer that nothing more will come, and goes on receiving.
    package func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends the connection in both directions; its owner notices and closes the descriptor.
    package func endConnection() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Ends a TCP connection by a reset, so that its peer gets an error in place of the end: connect(2) to no address does
    /// that while the descriptor stays open. On a Unix socket it does nothing.
    package func resetConnection() {
        var address = sockaddr(sa_family: sa_family_t(AF_UNSPEC), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        _ = Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Makes the close of the descriptor a reset: the kernel then frees what the peer has not read at once, rather than keep
    /// it until the peer reads it.
    package func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads and throws away what arrives, until the peer or ``endConnection()`` ends it, or so many bytes have arrived.
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

    /// Whether the peer has closed its side.
    package var isEndedByPeer: Bool {
        var entry = pollfd(descriptor: descriptor, events: Int32(ONWARD_POLLRDHUP))
        return poll(&entry, 1, 0) == 1
    }

    /// Bytes that the peer has not taken; `nil` where that cannot be told.
    package func unacknowledgedBytes() -> Int32? { SocketState(descriptor: descriptor).unacknowledgedOutput }

    /// Milliseconds since data last went out on a TCP connection; `nil` where that cannot be told.
    package func millisecondsSinceLastSend() -> UInt32? {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { return nil }
        return info.tcpi_last_data_sent
    }

    /// Bytes that the peer's system has taken on a TCP connection; `nil` where that cannot be told.
    package func acknowledgedBytes() -> Int64? { transferredBytes()?.acknowledged }

    /// Bytes that the peer's system has acknowledged, and bytes that have arrived from it, on a TCP connection; `nil` if the
    /// kernel does not count them.
    package func transferredBytes() -> (acknowledged: Int64, received: Int64)? {
        // `tcpi_bytes_acked` and `tcpi_bytes_received`, which the C library's tcp_info does not have. The kernel never moves
        // a field of it (linux/tcp.h).
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

    /// Whether a byte fits, now or within so many milliseconds.
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
