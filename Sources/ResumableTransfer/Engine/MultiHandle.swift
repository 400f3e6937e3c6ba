import CCurl
import Glibc
import SystemCalls

/// A multi handle of libcurl: connections, and the easy handles at work.
///
/// It is used on the engine's thread alone but for ``wake()`` and ``init()``.
final class MultiHandle: @unchecked Sendable {
    // libcurl allows curl_multi_wakeup on any thread, and everything else is called on the engine's. That thread changes
    // it once, after the last wake().
    private var pointer: UnsafeMutableRawPointer?
    /// Released after the connections are closed.
    let sockets = ConnectionSockets()

    /// libcurl's initialization, once in the process (curl_global_init(3)).
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init() {
        pointer = Self.isReady ? curl_multi_init() : nil
    }

    deinit { close() }

    /// Closes all connections. Nothing but that may follow.
    func close() {
        if let pointer { curl_multi_cleanup(pointer) }
        pointer = nil
    }

    /// Ends ``wait(_:)``, or the next one.
    func wake() { curl_multi_wakeup(pointer) }

    /// Whether the handle was taken.
    func add(_ easy: EasyHandle) -> Bool { curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK }

    /// Ends the handle's transfer unless it has ended; a connection in the middle of a message is closed.
    func remove(_ easy: EasyHandle) { curl_multi_remove_handle(pointer, easy.pointer) }

    /// Does what can be done without waiting.
    func perform() {
        var running: Int32 = 0
        curl_multi_perform(pointer, &running)
    }

    /// The next transfer that has ended, by the identity of its handle.
    func nextEnded() -> (easy: EasyHandle.ID, code: CURLcode)? {
        var code = CURLE_OK
        guard let easy = onward_multi_done(pointer, &code) else { return nil }
        return (EasyHandle.ID(easy), code)
    }

    /// Waits until something can be done, at most for so many milliseconds.
    func wait(_ milliseconds: Int32) {
        // A handle that could not be made must not become a busy loop.
        if curl_multi_poll(pointer, nil, 0, milliseconds, nil) != CURLM_OK { usleep(10_000) }
    }
}

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
