import CCurl
import Glibc
import SystemCalls

/// A multi handle of libcurl: its connections and the easy handles in use.
///
/// It is used on one thread at a time: that of the engine, or the one that waits for a response.
final class MultiHandle {
    private var pointer: UnsafeMutableRawPointer?
    /// Waits for all sockets; `nil`: libcurl waits.
    private let queue: EventQueue?
    /// Released after the connections are closed.
    let sockets: ConnectionSockets
    /// The sockets that are ready, and for what.
    private var ready: [(socket: Int32, readiness: EventQueue.Readiness)] = []
    /// The time at which libcurl has work to do, in monotonic nanoseconds; `nil`: only after an event.
    private var dueAt: Int64?

    /// libcurl's initialization, once in the process (curl_global_init(3)).
    private static let isReady: Bool = {
        keepOpenSSLAtExit()
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }()

    /// Keeps OpenSSL, if libcurl uses it, from freeing its memory in exit(3). The process can exit while a thread uses
    /// libcurl, and this thread would crash (OPENSSL_init_crypto(3): `OPENSSL_INIT_NO_ATEXIT`).
    private static func keepOpenSSLAtExit() {
        typealias Function = @convention(c) (_ options: UInt64, _ settings: UnsafeRawPointer?) -> Int32
        guard let symbol = dlsym(nil, "OPENSSL_init_crypto") else { return }
        _ = unsafeBitCast(symbol, to: Function.self)(0x80000, nil)
    }

    /// - Parameter queue: waits for the sockets. Without it, libcurl checks each socket whenever any of them is ready,
    ///   which is only reasonable for a single one.
    init(_ queue: EventQueue? = nil) {
        self.queue = queue
        sockets = ConnectionSockets(queue)
        pointer = Self.isReady ? curl_multi_init() : nil
        onward_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, Self.maxConnections)
        if queue != nil { setCallbacks() }
    }

    /// The maximum number of connections that are kept for other requests. The default of libcurl depends on the number of
    /// requests that are running: it would close most connections whenever several requests end at the same time.
    private static let maxConnections = 256

    private func setCallbacks() {
        onward_multi_set_event_functions(
            pointer,
            { _, socket, events, me, _ in
                guard let me else { return 0 }
                let readiness = EventQueue.Readiness(rawValue: UInt32(events & CURL_POLL_INOUT))
                MultiHandle.at(me).sockets.watch(socket, for: events == CURL_POLL_REMOVE ? nil : readiness)
                return 0
            },
            { _, milliseconds, me in
                guard let me else { return 0 }
                MultiHandle.at(me).dueAt =
                    milliseconds < 0 ? nil : SystemClock.monotonicNanoseconds() + Int64(milliseconds) * 1_000_000
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    private static func at(_ pointer: UnsafeMutableRawPointer) -> MultiHandle {
        Unmanaged<MultiHandle>.fromOpaque(pointer).takeUnretainedValue()
    }

    deinit { close() }

    /// Closes all connections. No other call may follow.
    func close() {
        if let pointer { curl_multi_cleanup(pointer) }
        pointer = nil
    }

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
        guard queue != nil else {
            curl_multi_perform(pointer, &running)
            return
        }
        for (socket, readiness) in ready {
            curl_multi_socket_action(pointer, socket, Int32(readiness.rawValue), &running)
        }
        ready.removeAll(keepingCapacity: true)
        guard let dueAt, dueAt <= SystemClock.monotonicNanoseconds() else { return }
        // libcurl sets the next time, or none.
        self.dueAt = nil
        curl_multi_socket_action(pointer, CURL_SOCKET_BAD, 0, &running)
    }

    /// The next transfer that has ended, by the identity of its handle.
    func nextEnded() -> (easy: EasyHandle.ID, code: CURLcode)? {
        var code = CURLE_OK
        guard let easy = onward_multi_done(pointer, &code) else { return nil }
        return (EasyHandle.ID(easy), code)
    }

    /// Waits until there is work to do, or until this time has passed.
    func wait(_ milliseconds: Int32) {
        guard let queue else {
            // Waits if libcurl cannot, so that a missing handle does not cause a busy loop.
            if curl_multi_poll(pointer, nil, 0, milliseconds, nil) != CURLM_OK { usleep(10_000) }
            return
        }
        let remaining = dueAt.map { max($0 - SystemClock.monotonicNanoseconds(), 0) } ?? .max
        let limit = min(milliseconds, Int32(clamping: remaining / 1_000_000 + (remaining % 1_000_000 > 0 ? 1 : 0)))
        sockets.updateQueue()
        queue.wait(limit) { socket, readiness in
            let wanted = sockets.readiness(of: socket, readiness)
            if !wanted.isEmpty { ready.append((socket, wanted)) }
        }
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

    /// The events that libcurl waits for, and those that the queue reports.
    private struct Watch {
        var wanted: EventQueue.Readiness = []
        /// The events that the queue reports; `nil` if the queue does not have the socket.
        var reported: EventQueue.Readiness?
    }

    private let queue: EventQueue?
    private var watches: [Int32: Watch] = [:]
    /// The sockets whose watches have changed since the queue was updated. A socket can be in it several times.
    private var changed: [Int32] = []
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

    /// - Parameter queue: waits for the sockets; `nil`: libcurl waits.
    init(_ queue: EventQueue?) { self.queue = queue }

    func opened(_ socket: Int32) {
        open.insert(socket)
        watches[socket] = nil
    }

    /// Closes a socket.
    func close(_ socket: Int32) {
        open.remove(socket)
        unwatch(socket)
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

    // MARK: Events

    /// Waits for events of a socket, or of a descriptor with which libcurl's threads wake it.
    /// - Parameter readiness: `nil`: libcurl does not need the socket now.
    func watch(_ socket: Int32, for readiness: EventQueue.Readiness?) {
        // Only libcurl's own descriptors may be closed without a call of ``close(_:)``.
        if readiness == nil, !open.contains(socket) { return unwatch(socket) }
        watches[socket, default: Watch()].wanted = readiness ?? []
        changed.append(socket)
    }

    private func unwatch(_ socket: Int32) {
        if let watch = watches.removeValue(forKey: socket), watch.reported != nil { queue?.remove(socket) }
    }

    /// Updates the events that the queue reports. libcurl often changes what it waits for, and changes it back.
    func updateQueue() {
        for socket in changed {
            guard let watch = watches[socket], watch.wanted != watch.reported else { continue }
            // A connection has no input between two requests, and most requests wait for input first. So the queue
            // continues to report it, until there is an event that no request waits for.
            if watch.wanted.isEmpty, watch.reported == .input || watch.reported == nil { continue }
            // After an error, the timeouts of the request end it.
            watches[socket]?.reported = (try? queue?.watch(socket, for: watch.wanted)).map { watch.wanted }
        }
        changed.removeAll(keepingCapacity: true)
    }

    /// The events of a socket for libcurl, which gets an error as input, too: it reads the reason, and a response that has
    /// arrived before.
    func readiness(of socket: Int32, _ reported: EventQueue.Readiness) -> EventQueue.Readiness {
        guard let wanted = watches[socket]?.wanted, !wanted.isEmpty else {
            unwatch(socket)
            return []
        }
        var readiness = reported.intersection(wanted)
        if reported.contains(.failure) {
            if wanted.contains(.input) { readiness.insert(.input) }
            if wanted.contains(.output) { readiness.insert(.failure) }
        }
        return readiness
    }
}
