import SystemCalls
import TLS

/// One open connection as other threads may see it: they can end it, and see since when it is idle.
///
/// The descriptor belongs to libmicrohttpd, which closes it only after `close()` has returned; the lock sees to it that
/// no other connection that was given the same number is ever ended.
final class ConnectionEntry: Sendable {
    /// What the connection waits for, which decides how long it may.
    enum Phase: Sendable {
        /// The head of a request that has not begun or is not complete.
        case head(first: Bool)
        /// Content of a request.
        case content
        /// The server, to store content that is followed by more.
        case storing
        /// The server itself: a store, a target.
        case server
        /// The client, to take the response.
        case response
        /// The client, to close after an answer that it was given early.
        case discarding
    }

    /// Who ended the connection, if it was not the client.
    enum CloseReason: String, Sendable, CaseIterable {
        /// Another request has the upload now, or took it away.
        case takenOver = "taken-over"
        /// Its client let it wait for too long.
        case timeout
        /// Its client moved fewer bytes than it has to.
        case tooSlow = "too-slow"
        /// The server stops.
        case stopping
        /// Content of its response could not be read or produced.
        case contentFailed = "content-failed"
        /// There were too many connections, and this one made room for another one.
        case tooMany = "too-many-connections"
    }

    struct State: Sendable {
        var phase: Phase = .head(first: true)
        /// Monotonic nanoseconds of the last sign of life.
        var since: Int64
        var isOpen = true
        var closeReason: CloseReason?
        /// Of the response, where the kernel tells no time of the last sending.
        var unacknowledged: Int32 = 0
        /// Bytes of content received, and nanoseconds in which the client could have sent them.
        var received: Int64 = 0
        var waited: Int64 = 0
        var rate = RateWindow()
    }

    let output: SocketOutput
    /// The address at the other end, perhaps a proxy's; `nil` on a Unix socket.
    let peer: String?
    /// The client that it counts for while it serves no forwarded request.
    let peerClient: ConnectionClient
    /// What it was opened with lives as long as it does, whatever new connections get; `nil` without TLS.
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

    /// - Parameter received: bytes of content with which the phase before it ended.
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

    /// Ends the connection from any thread. Its own thread notices, and ends the request as interrupted.
    func close(reason: CloseReason) {
        state.withLock {
            guard $0.isOpen else { return }
            $0.closeReason = $0.closeReason ?? reason
            // What a slow reader has not read would stay in the kernel for as long as it goes on reading slowly.
            if case (.tooMany, .response) = (reason, $0.phase) { output.resetOnClose() }
            output.endConnection()
        }
    }

    /// Content of the response cannot be read or produced. libmicrohttpd then closes the connection.
    /// - Parameter resets: the end of the connection would be the end of the content, so that nothing but a reset shows that
    ///   the content is incomplete.
    func failContent(resets: Bool) {
        state.withLock {
            guard $0.isOpen else { return }
            $0.closeReason = $0.closeReason ?? .contentFailed
            if resets { output.resetConnection() }
        }
    }

    /// Bytes that moved in either direction so far; 0 if that is not known, as on a Unix socket.
    func transferredBytes() -> Int64 {
        state.withLock {
            guard $0.isOpen, let bytes = output.transferredBytes() else { return 0 }
            return bytes.acknowledged + bytes.received
        }
    }

    /// Ends the connection unless its client waits for an answer that is being made or sent.
    func closeUnlessAnswering() {
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

    /// Who ended the connection; `nil`: it is open, or its client did.
    var closeReason: CloseReason? { state.withLock { $0.closeReason } }

    /// Whether its client still waits for an answer.
    var isAwaited: Bool { state.withLock { $0.isOpen && $0.closeReason == nil && !output.isEndedByPeer } }

    /// The descriptor is about to be closed.
    func close() { state.withLock { $0.isOpen = false } }

    /// Ends the connection when it waits longer than `timeouts` allow.
    func close(ifOverdue timeouts: ConnectionTimeouts, now: Int64) {
        state.withLock {
            guard $0.isOpen, $0.closeReason == nil, let limit = timeouts.limit(for: $0.phase) else { return }
            if let minimum = timeouts.minimumRate, let (bytes, nanoseconds) = moved($0, now: now),
                $0.rate.isTooSlow(
                    bytes: bytes, nanoseconds: nanoseconds, minimum: minimum, length: timeouts.rateWindow)
            {
                $0.closeReason = .tooSlow
                output.endConnection()
                return
            }
            var idle = now > $0.since ? now - $0.since : 0
            if case .response = $0.phase {
                // Content goes out without our help; what counts is when something last did.
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

    /// Bytes that the client has sent or taken in this request, and nanoseconds in which it could; `nil` where that is
    /// not to be asked, or cannot be told.
    private func moved(_ state: State, now: Int64) -> (bytes: Int64, nanoseconds: Int64)? {
        switch state.phase {
        case .content: (state.received, state.waited + max(0, now - state.since))
        case .response: output.acknowledgedBytes().map { ($0, now) }
        case .head, .storing, .server, .discarding: nil
        }
    }
}

/// How long a connection may wait for its client, in nanoseconds.
struct ConnectionTimeouts: Sendable {
    var header: Int64
    var idle: Int64
    /// Bytes a second that content and responses have to move, and the seconds over which that is looked at.
    var minimumRate: Int64?
    var rateWindow = Int64(ServerConfiguration.rateWindow)
    /// Time for a client to read an early answer and stop sending.
    var discard: Int64 = 10_000_000_000

    func limit(for phase: ConnectionEntry.Phase) -> Int64? {
        switch phase {
        case .head(first: true): header
        case .head(first: false), .content, .response: idle
        case .discarding: discard
        case .storing, .server: nil
        }
    }
}
