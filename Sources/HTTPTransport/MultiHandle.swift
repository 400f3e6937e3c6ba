import CCurl
import Glibc
import SystemCalls

/// A multi handle of libcurl: its connections and the easy handles in use.
///
/// All functions except ``wake()`` and ``init()`` are called on one thread at a time: that of the engine, or the one that
/// waits for a response.
final class MultiHandle: @unchecked Sendable {
    // libcurl allows curl_multi_wakeup on any thread; all other functions are called on one thread at a time. The pointer
    // changes once, after the last wake().
    private var pointer: UnsafeMutableRawPointer?
    /// Released after the connections are closed.
    let sockets = ConnectionSockets()

    /// libcurl's initialization, once in the process (curl_global_init(3)).
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init() {
        pointer = Self.isReady ? curl_multi_init() : nil
        onward_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, Self.maxConnections)
    }

    /// The maximum number of connections that are kept for other requests. The default of libcurl depends on the number of
    /// requests that are running: it would close most connections whenever several requests end at the same time.
    private static let maxConnections = 256

    deinit { close() }

    /// Closes all connections. No other call may follow.
    func close() {
        if let pointer { curl_multi_cleanup(pointer) }
        pointer = nil
    }

    /// Ends ``wait(_:)``, or the next one.
    func wake() { curl_multi_wakeup(pointer) }

    /// Adds an easy handle, whose calls a delegate gets. Returns whether libcurl has accepted it.
    func add(_ easy: EasyHandle, delegate: (any EasyHandle.Delegate)?) -> Bool {
        easy.delegate = delegate
        if curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK { return true }
        easy.delegate = nil
        return false
    }

    /// Ends the handle's transfer unless it has ended; a connection in the middle of a message is closed.
    func remove(_ easy: EasyHandle) {
        curl_multi_remove_handle(pointer, easy.pointer)
        easy.delegate = nil
    }

    /// Does all work that is possible without waiting.
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

    /// Waits until there is work to do, or until this time has passed.
    func wait(_ milliseconds: Int32) {
        // Waits if libcurl cannot, so that a missing handle does not cause a busy loop.
        if curl_multi_poll(pointer, nil, 0, milliseconds, nil) != CURLM_OK { usleep(10_000) }
    }
}

/// The sockets of a multi handle's connections. libcurl opens and closes them through this object, because
/// libcurl does not report during a transfer which socket it uses. Used on one thread at a time.
final class ConnectionSockets {
    /// The use of a socket for one request.
    struct Use {
        let socket: Int32
        fileprivate let number: Int
    }

    private var open: Set<Int32> = []
    /// The number of the last use of each socket that is not released. A request can use a connection before the use of
    /// the previous request is released, because libcurl reports ended requests later.
    private var uses: [Int32: Int] = [:]
    private var lastUse = 0
    /// The input that was unread when a used socket was closed, by the numbers of the uses.
    private var unread: [Int: [UInt8]] = [:]
    /// The sockets that were found by their local ports. A socket can be closed, or have another port now.
    private var ports: [UInt16: Int32] = [:]

    /// The maximum number of bytes of unread input that are kept: enough for the head of a response and short content.
    private static let maxKeptInput = 320 << 10

    func opened(_ socket: Int32) { open.insert(socket) }

    /// Closes a socket.
    func close(_ socket: Int32) {
        open.remove(socket)
        if let use = uses.removeValue(forKey: socket) {
            unread[use] = SocketState(descriptor: socket).availableInput(atMost: Self.maxKeptInput)
        }
        _ = FileDescriptor(owning: socket)
    }

    /// Finds the socket with this local port, and begins a use of it. The input that is unread when the socket is closed
    /// is kept until ``release(_:)``.
    func use(localPort: Int32) -> Use? {
        let found = open.count == 1 ? open.first : UInt16(exactly: localPort).flatMap(socket)
        guard let found else { return nil }
        lastUse += 1
        uses[found] = lastUse
        return Use(socket: found, number: lastUse)
    }

    private func socket(withPort port: UInt16) -> Int32? {
        func hasPort(_ socket: Int32) -> Bool { SocketState(descriptor: socket).localPort == port }
        // A connection is often used again, and reading the ports of all sockets needs a system call for each of them.
        if let known = ports[port], open.contains(known), hasPort(known) { return known }
        let found = open.first(where: hasPort)
        ports[port] = found
        return found
    }

    /// Ends a use.
    /// - Returns: the input that was unread when the socket was closed; `nil` if it is open, or if there was none.
    func release(_ use: Use) -> [UInt8]? {
        if uses[use.socket] == use.number { uses[use.socket] = nil }
        return unread.removeValue(forKey: use.number)
    }

    /// Whether the socket has not been closed.
    func isOpen(_ socket: Int32) -> Bool { open.contains(socket) }
}
