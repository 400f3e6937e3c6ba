import Glibc

/// The state of a connected socket whose descriptor another object owns, as the kernel reports it.
package struct SocketState: Sendable {
    private let descriptor: Int32

    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// Whether a read would return immediately: with bytes, the end of the input, or an error.
    package var hasInput: Bool {
        var entry = Glibc.pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// Bytes written that the peer has not acknowledged yet (SIOCOUTQ, tcp(7)); nil if that is unknown.
    package var unacknowledgedOutput: Int32? {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? count : nil
    }

    /// The local port; nil if the socket has none.
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
