import SystemCalls

/// The sockets of a multi handle's connections. libcurl opens and closes them through this object, because it does not
/// report during a transfer which one it uses. Used on the engine's thread alone.
final class ConnectionSockets {
    private var open: Set<Int32> = []
    /// Those whose unread input is kept when they are closed.
    private var watched: Set<Int32> = []
    private var unread: [Int32: [UInt8]] = [:]

    /// As much as the head of a response and a short content may be.
    private static let keptInput = 320 << 10

    func opened(_ socket: Int32) { open.insert(socket) }

    /// Closes a socket.
    func close(_ socket: Int32) {
        open.remove(socket)
        if watched.remove(socket) != nil {
            unread[socket] = SocketState(descriptor: socket).availableInput(atMost: Self.keptInput)
        }
        _ = FileDescriptor(owning: socket)
    }

    /// The connection that has this port on our side. What is unread at its end is kept until ``release(_:)``.
    func watch(localPort: Int32) -> Int32? {
        guard let socket = open.first(where: { SocketState(descriptor: $0).localPort == UInt16(exactly: localPort) })
        else { return nil }
        watched.insert(socket)
        unread[socket] = nil
        return socket
    }

    /// What had arrived and was not read when the socket was closed; nil if it is open, or nothing had.
    func release(_ socket: Int32) -> [UInt8]? {
        watched.remove(socket)
        return unread.removeValue(forKey: socket)
    }

    /// Whether the socket has not been closed.
    func isOpen(_ socket: Int32) -> Bool { open.contains(socket) }
}
