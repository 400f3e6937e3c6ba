import HTTPSemantics
import SystemCalls
import TLS

/// An open connection that other threads can observe and close.
///
/// libmicrohttpd owns the descriptor and closes it only after ``descriptorWillClose()`` has returned. The lock ensures
/// that no later connection with the same descriptor number is closed.
final class ConnectionEntry: Sendable {
    /// The state of the connection, which determines its timeout.
    enum Phase: Sendable {
        /// The client has not sent the complete head of a request yet.
        case head(first: Bool)
        /// The client has not sent more content of the request yet.
        case content
        /// The server stores content, and more content follows.
        case storing
        /// The server processes the request in the store or the target.
        case server
        /// The client reads the response.
        case response
        /// The client has received an early response and has not closed the connection yet.
        case discarding
    }

    /// The reason why the server closed the connection.
    enum CloseReason: String, Sendable, CaseIterable {
        /// Another request took the upload over or canceled it.
        case takenOver = "taken-over"
        /// The client sent nothing for too long.
        case timeout
        /// The client was slower than the minimum rate.
        case tooSlow = "too-slow"
        /// The server is stopping.
        case stopping
        /// The content of the response could not be read or produced.
        case contentFailed = "content-failed"
        /// There were too many connections, and this one was closed to make room for another one.
        case tooMany = "too-many-connections"
    }

    struct State: Sendable {
        var phase: Phase = .head(first: true)
        /// The time of the last activity in monotonic nanoseconds.
        var since: Int64
        var isOpen = true
        var closeReason: CloseReason?
        /// The number of unacknowledged bytes of the response. It is used if the kernel does not report when data was
        /// last sent.
        var unacknowledged: Int32 = 0
        /// The bytes of content received on this connection.
        var received: Int64 = 0
        /// The nanoseconds during which the client could send content.
        var waited: Int64 = 0
        var rate = RateWindow()
        /// Whether ``close(reason:)`` was called because the server is stopping.
        var isStopping = false
        var onStop: (@Sendable () -> Void)?
    }

    let output: SocketOutput
    /// The address of the peer, which may be a proxy; `nil` on a Unix socket.
    let peer: String?
    /// The client for which the connection is counted while it serves no forwarded request.
    let peerClient: ConnectionClient
    /// The certificate of this connection; `nil` without TLS. It must exist until the connection is closed, even if new
    /// connections get another certificate.
    let credentials: ServerCredentials?
    private let state: Monitor<State>

    init(
        output: SocketOutput, peer: String?, client: ConnectionClient, credentials: ServerCredentials?, now: Int64
    ) {
        self.output = output
        self.peer = peer
        peerClient = client
        self.credentials = credentials
        state = Monitor(State(since: now))
    }

    /// - Parameter received: bytes of content received at the end of the previous phase.
    func enter(_ phase: Phase, received: Int = 0, at now: Int64) {
        state.withLock {
            if case .content = $0.phase { $0.waited += max(0, now - $0.since) }
            switch phase {
            case .head, .response, .discarding: $0.rate = RateWindow()
            case .content, .storing, .server: break
            }
            $0.received += Int64(received)
            $0.phase = phase
            $0.since = now
        }
    }

    /// Begins work of the server while the client pauses.
    /// - Returns: the beginning of the pause, for ``continuePause(_:)``.
    func interruptPause(at now: Int64) -> Int64 {
        state.withLock { state in
            defer { (state.phase, state.since) = (.storing, now) }
            return state.since
        }
    }

    /// Ends the work. The pause continues as if it had not been interrupted: the idle timeout counts from its
    /// beginning.
    func continuePause(_ since: Int64) { state.withLock { ($0.phase, $0.since) = (.content, since) } }

    /// Closes the connection from any thread. The thread of the connection then ends the request as interrupted.
    func close(reason: CloseReason) {
        let onStop = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.isOpen else { return nil }
            state.closeReason = state.closeReason ?? reason
            // Without a reset the kernel would keep unread output for as long as a slow client reads.
            if case (.tooMany, .response) = (reason, state.phase) { output.resetOnClose() }
            output.endConnection()
            guard reason == .stopping else { return nil }
            state.isStopping = true
            return state.onStop
        }
        onStop?()
    }

    /// Whether ``close(reason:)`` was called because the server is stopping.
    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Calls `action` when ``close(reason:)`` is called because the server is stopping, or immediately if it was
    /// already called for this reason. `nil` removes the previous action.
    func onStop(_ action: (@Sendable () -> Void)?) {
        let isStopping = state.withLock { state in
            state.onStop = action
            return state.isStopping
        }
        if isStopping { action?() }
    }

    /// Reports that content of the response cannot be read or produced. libmicrohttpd then closes the connection.
    /// - Parameter shouldReset: whether the end of the connection marks the end of the content, so only a reset shows that
    ///   the content is incomplete.
    func failContent(resets shouldReset: Bool) {
        state.withLock {
            guard $0.isOpen else { return }
            $0.closeReason = $0.closeReason ?? .contentFailed
            if shouldReset { output.resetConnection() }
        }
    }

    /// The bytes sent and received so far; 0 if that is unknown, as on a Unix socket.
    func transferredBytes() -> Int64 {
        state.withLock {
            guard $0.isOpen, let bytes = output.transferredBytes() else { return 0 }
            return bytes.acknowledged + bytes.received
        }
    }

    /// Closes the connection unless a response is being produced or sent.
    func closeUnlessResponding() {
        state.withLock {
            switch $0.phase {
            case .server, .response: return
            case .head, .content, .storing, .discarding: break
            }
            guard $0.isOpen, $0.closeReason == nil else { return }
            $0.closeReason = .stopping
            output.endConnection()
        }
    }

    /// The reason why the server closed the connection; `nil` if it is open or the client closed it.
    var closeReason: CloseReason? { state.withLock { $0.closeReason } }

    /// Whether the client still waits for a response.
    var isAwaited: Bool { state.withLock { $0.isOpen && $0.closeReason == nil && !output.isEndedByPeer } }

    /// Must be called before the descriptor is closed. Afterwards ``close(reason:)`` does nothing.
    func descriptorWillClose() { state.withLock { $0.isOpen = false } }

    /// Closes the connection if it waits longer than `timeouts` allow, or if the client is slower than the minimum rate
    /// in `timeouts`.
    func close(ifOverdue timeouts: ConnectionTimeouts, now: Int64) {
        state.withLock {
            guard $0.isOpen, $0.closeReason == nil, let limit = timeouts.limit(for: $0.phase) else { return }
            if let minimum = timeouts.minRate, let (bytes, nanoseconds) = counters($0, now: now),
                $0.rate.isTooSlow(
                    bytes: bytes, nanoseconds: nanoseconds, minimum: minimum, length: timeouts.rateWindow)
            {
                $0.closeReason = .tooSlow
                output.endConnection()
                return
            }
            var idle = now > $0.since ? now - $0.since : 0
            if case .response = $0.phase {
                // The kernel sends content from files by itself, so the idle time starts when it last sent data.
                if let milliseconds = output.millisecondsSinceLastSend() {
                    idle = min(idle, Int64(milliseconds) * 1_000_000)
                } else if let unacknowledged = output.unacknowledgedBytes(),
                    unacknowledged != $0.unacknowledged || unacknowledged == 0
                {
                    $0.unacknowledged = unacknowledged
                    $0.since = now
                    return
                }
            }
            guard idle > limit else { return }
            $0.closeReason = .timeout
            output.endConnection()
        }
    }

    /// Two counters whose differences give the rate of the client: the bytes that it has sent or acknowledged on this
    /// connection, and the time in nanoseconds during which it could do so. `nil` if they are unknown or do not matter in
    /// this phase.
    private func counters(_ state: State, now: Int64) -> (bytes: Int64, nanoseconds: Int64)? {
        switch state.phase {
        case .content: (state.received, state.waited + max(0, now - state.since))
        case .response: output.acknowledgedBytes().map { ($0, now) }
        case .head, .storing, .server, .discarding: nil
        }
    }
}

/// The timeouts of connections, in nanoseconds unless stated otherwise.
struct ConnectionTimeouts: Sendable {
    /// The seconds over which rates are averaged by default.
    static let defaultRateWindow: Int64 = 10

    var header: Int64
    var idle: Int64
    /// The minimum rate of content and responses in bytes per second, and the seconds over which it is averaged.
    var minRate: Int64?
    var rateWindow = Self.defaultRateWindow
    /// The time for a client to read an early response and stop sending.
    var discard: Int64 = 10_000_000_000

    /// The time between two checks of the timeouts: between a quarter of a second and a second.
    var checkInterval: Int64 {
        let shortest = min(header, idle, discard, minRate == nil ? .max : rateWindow * 1_000_000_000)
        return max(250_000_000, min(shortest / 8, 1_000_000_000))
    }

    func limit(for phase: ConnectionEntry.Phase) -> Int64? {
        switch phase {
        case .head(first: true): header
        case .head(first: false), .content, .response: idle
        case .discarding: discard
        case .storing, .server: nil
        }
    }
}

/// Writes to a connection between the writes of libmicrohttpd, with or without TLS. Use it only on the thread of the
/// connection.
struct ConnectionOutput: Sendable {
    private let socket: SocketOutput
    /// The TLS session; `nil` on a connection without TLS.
    private let session: TLSSession?

    init(socket: SocketOutput, session: TLSSession?) {
        self.socket = socket
        self.session = session
    }

    /// Sends all of `bytes`. Waits at most `timeout` milliseconds until the socket is writable.
    ///
    /// - Parameter isFollowed: whether more output follows immediately, with which these bytes may be sent.
    func send(_ bytes: [UInt8], timeout: Int32, isFollowed: Bool = false) -> SocketOutput.Outcome {
        let outcome =
            session?.send(bytes, on: socket, timeout: timeout)
            ?? socket.send(bytes, timeout: timeout, isFollowed: isFollowed)
        // With TLS libmicrohttpd can leave the socket corked. Without TLS a small write could wait until the peer has
        // acknowledged an earlier one.
        if outcome == .sent && !isFollowed { socket.push() }
        return outcome
    }

    /// Ends the output; input is still received.
    func endOutput() {
        session?.endOutput()
        socket.endOutput()
    }

    /// Reads and discards input until the connection ends or `limit` bytes have arrived.
    func discardInput(atMost limit: Int64) { socket.discardInput(atMost: limit) }
}

/// The client for which a connection is counted when the server limits connections.
struct ConnectionClient: Sendable, Hashable, CustomStringConvertible {
    private enum Name: Hashable {
        /// An IPv4 address, or the /64 prefix of an IPv6 address.
        case network(AddressBlock)
        /// A name that a proxy generated, or an address that cannot be parsed.
        case text(String)
        case unixSocket
    }

    private let name: Name
    /// Whether the peer is trusted (a program on this machine or a proxy) and the current request was not forwarded.
    /// Connections of such a client are closed only if no other connections are open.
    let isExempt: Bool

    /// - Parameters:
    ///   - address: the address of the client, or its name from a proxy; `nil` on a Unix socket.
    ///   - isExempt: see ``isExempt``.
    init(_ address: String?, isExempt: Bool) {
        self.isExempt = isExempt
        guard let address else {
            name = .unixSocket
            return
        }
        // A link-local address has the name of its interface as a suffix.
        let parsed = IPAddress(parsing: String(address.prefix { $0 != "%" }))
        name = parsed.map { .network(AddressBlock(clientNetworkOf: $0)) } ?? .text(address)
    }

    var description: String {
        switch name {
        case .network(let block): block.address.isIPv4 ? "\(block.address)" : "\(block)"
        case .text(let text): text
        case .unixSocket: "a Unix socket"
        }
    }
}
