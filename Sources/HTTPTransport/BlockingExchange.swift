import HTTPSemantics
import SystemCalls

/// Sends requests to one server, each on the thread that waits for its response. The connections are used again, even
/// for requests of other threads.
package final class BlockingTransport: Sendable {
    private let maxIdle: Int
    /// The time, in nanoseconds, for which an unused connection is kept.
    private let maxIdleTime: Int64
    private let idle = Monitor<[PooledConnection]>([])

    /// - Parameters:
    ///   - maxIdle: the maximum number of connections that are kept while no request uses them.
    ///   - maxIdleTime: the time after which an unused connection is closed at the end of another request.
    package init(maxIdle: Int = 64, maxIdleTime: Duration = .seconds(60)) {
        self.maxIdle = maxIdle
        self.maxIdleTime = maxIdleTime.nanoseconds
    }

    /// Starts a request. Its exchange is used on one thread at a time.
    ///
    /// All requests of a transport have the same URI and settings, and neither a gate nor a maximum rate. libcurl makes the
    /// connections; the exchange itself writes the request and parses the response. ``TransportRequest/receive`` is not
    /// called: the content of the response is read from the exchange.
    /// - Parameter content: the source of the request if its content does not exist in advance.
    package func start(_ request: TransportRequest, content: ArrivingContent? = nil) -> BlockingExchange {
        // A server may be about to close a connection of an earlier request.
        BlockingExchange(request, content, request.isNewConnectionNeeded ? nil : idleConnection(), self)
    }

    private func idleConnection() -> PooledConnection? {
        // The connection that was used last is the least likely to have been closed by the server.
        while let connection = idle.withLock({ $0.popLast() }) { if connection.isUsable { return connection } }
        return nil
    }

    fileprivate func keep(_ connection: PooledConnection) {
        let now = SystemClock.monotonicNanoseconds()
        connection.becomeIdle(at: now)
        let unused: [PooledConnection] = idle.withLock { idle in
            idle.append(connection)
            let count = idle.prefix { $0.idleSince < now - maxIdleTime }.count
            let surplus = max(count, idle.count - maxIdle)
            guard surplus > 0 else { return [] }
            defer { idle.removeFirst(surplus) }
            return Array(idle.prefix(surplus))
        }
        // The unused connections are closed here, outside the lock.
        withExtendedLifetime(unused) {}
    }
}

/// One request and its response, which the waiting thread performs by calling ``step(until:)``. One thread at a time uses
/// it.
package final class BlockingExchange {
    private let transport: BlockingTransport
    private let request: TransportRequest
    private let content: ArrivingContent?
    /// The connection of the exchange; `nil` after its end.
    private var connection: PooledConnection?
    /// The writer of the request; `nil` if the request cannot be sent.
    private var writer: RequestWriter?
    private var response: ArrivingResponse
    private var watch: ActivityWatch
    /// The time at which ``keepTime(_:)`` has to be called again, in monotonic nanoseconds.
    private var nextTime = Int64.max
    /// Whether the exchange waited for this side, not for the server, at the end of the last step.
    private var hasWaited = false
    /// The reason why nothing more of the request can be sent. A response can have arrived before.
    private var sendFailure: TransportFailure?
    /// The result; `nil` if the exchange has not ended.
    package private(set) var result: TransportResult?
    /// Whether the request, or a part of it, may have been sent.
    package private(set) var isPossiblySent = false
    private var hasEndedWhileSending = false

    fileprivate init(
        _ request: TransportRequest, _ content: ArrivingContent?, _ connection: PooledConnection?,
        _ transport: BlockingTransport
    ) {
        self.request = request
        self.content = content
        self.transport = transport
        response = ArrivingResponse(to: request)
        watch = ActivityWatch(limit: request.stallTimeout, now: SystemClock.monotonicNanoseconds())
        writer = RequestWriter(request)
        if writer == nil { end(.invalidRequest) } else { use(connection) }
    }

    deinit { cancel() }

    /// Begins to use a connection; `nil`: a new one.
    private func use(_ idle: PooledConnection?) {
        guard let connection = idle ?? PooledConnection(request) else { return end(.outOfMemory) }
        self.connection = connection
        if isConnected { send() } else { connect() }
        keepTime(SystemClock.monotonicNanoseconds())
    }

    /// Ends the exchange as ``TransportFailure/canceled`` unless it has ended.
    package func cancel() { if result == nil { end(.canceled) } }

    /// Continues the exchange: does everything that is possible now, or waits until something is.
    /// - Parameter deadline: the end of the wait, in monotonic nanoseconds.
    /// - Returns: false if the deadline has passed and the exchange has not ended.
    @discardableResult
    package func step(until deadline: Int64) -> Bool {
        guard result == nil, let connection else { return true }
        var now = SystemClock.monotonicNanoseconds()
        // The server is not responsible for the time since the last call.
        if hasWaited { note(isWaiting: true, now) }
        let wait = Int32(clamping: (max(min(deadline, nextTime) - now, 0) + 999_999) / 1_000_000)
        if !isConnected {
            connection.awaitConnection(wait)
            connect()
        } else if let socket = connection.socket {
            let canSend = !isEarly && sendFailure == nil && writer?.isSent == false && !isAwaitingSource
            let hasInput = connection.canHaveInput && response.hasRoom
            let ready = socket.wait(forInput: response.hasRoom, output: canSend, hasInput ? 0 : wait)
            // Input is read first: it can contain a response after which no more of the request is sent.
            if ready.input || hasInput { receive() }
            if ready.output, result == nil { send() }
        }
        now = SystemClock.monotonicNanoseconds()
        keepTime(now)
        return result != nil || now < deadline
    }

    private func connect() {
        guard let connection, let outcome = connection.connect() else { return }
        switch outcome {
        case .success: send()
        case .failure(let failure): end(failure)
        }
    }

    private func send() {
        guard let connection, !isEarly, sendFailure == nil else { return }
        writer?.fill()
        if let failure = writer?.failure { return end(failure) }
        guard writer?.hasUnsent == true else { return }
        isPossiblySent = true
        switch writer?.withUnsent(connection.send) {
        case .bytes(let count): writer?.advance(count)
        case .failed(let failure): sendFailure = failure
        case .none?, .end, nil: break
        }
    }

    private func receive() {
        while let connection, response.hasRoom {
            switch connection.receive({ response.receive($0) }) {
            case .bytes:
                if let failure = response.failure { return end(failure) }
                if response.isComplete { return end(nil) }
                if !connection.canHaveInput { return }
            case .none: return
            case .end: return endInput(nil)
            case .failed(let failure): return endInput(failure)
            }
        }
    }

    /// Handles the end of the connection.
    private func endInput(_ failure: TransportFailure?) {
        guard let connection else { return }
        if failure == nil { response.endInput() }
        if response.isComplete { return end(nil) }
        // The server may have closed the connection when it received the request, without processing it.
        if connection.isReused, request.isRepeatable, !response.hasBegun, writer?.readCount == 0 {
            writer = RequestWriter(request)
            sendFailure = nil
            return use(nil)
        }
        end(failure ?? sendFailure ?? .closed)
    }

    // MARK: Time

    private var isConnected: Bool { connection?.socket != nil }

    /// Whether the head of the final response has arrived before the complete request was sent. The server then needs no
    /// more of it.
    private var isEarly: Bool { response.head != nil && writer?.isSent == false }

    /// Whether all bytes of the source that exist were sent.
    private var isAwaitingSource: Bool {
        guard let content, let writer else { return false }
        return !writer.hasUnsent && !writer.isAtEnd && !content.isReadable
    }

    private func note(isWaiting: Bool, _ now: Int64) {
        watch.note(moved: (writer?.sentCount ?? 0) + response.moved, isWaiting: isWaiting, now: now)
    }

    private func keepTime(_ now: Int64) {
        guard result == nil else { return }
        hasWaited = !isConnected || !response.hasRoom || response.head == nil && isAwaitingSource
        note(isWaiting: hasWaited, now)
        var next = watch.nextTime ?? .max
        if isEarly {
            let silence = watch.lastActivity + ActiveTransfer.maxEarlySilence
            if now >= silence { return end(nil) }
            next = min(next, silence)
        }
        if watch.isStalled(now: now, output: { connection?.socket?.unacknowledgedOutput }) { return end(.stalled) }
        nextTime = next
    }

    // MARK: The end

    private func end(_ failure: TransportFailure?) {
        hasEndedWhileSending = isSending
        result = TransportResult(
            head: response.head, content: [], sent: writer?.sentCount ?? 0, received: response.received,
            hasSourceEnded: writer?.isAtEnd ?? false, failure: failure,
            isContentComplete: failure == nil && response.isComplete)
        let isKept = writer?.isSent == true && response.isConnectionKept && failure == nil
        // If every request of a server needs a new connection, kept ones would never be used.
        if isKept, !request.isNewConnectionNeeded, let connection { transport.keep(connection) }
        connection = nil
    }

    // MARK: The request

    /// Whether bytes of the request wait until they can be passed to the kernel, or waited when the exchange ended.
    package var isSending: Bool {
        guard result == nil else { return hasEndedWhileSending }
        return writer?.isSent == false && !isAwaitingSource
    }

    // MARK: The response

    /// Whether an interim response has arrived that ``nextInterim()`` has not returned.
    package var hasInterim: Bool { !response.interims.isEmpty }

    /// Removes and returns the first interim response that was not returned before.
    package func nextInterim() -> ClientResponseHead? {
        response.interims.isEmpty ? nil : response.interims.removeFirst()
    }

    /// The head of the final response; `nil` if it has not arrived.
    package var head: ClientResponseHead? { response.head }

    /// Whether so much content has arrived that no more is received before some of it is read.
    package var isFull: Bool { !response.hasRoom }

    /// Reads content that has arrived.
    /// - Returns: the number of bytes; 0 if there are none.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Int { response.read(into: buffer) }

    /// Reads all content that has arrived.
    package func readAll() -> [UInt8] { response.readAll() }
}

/// The content of a request, which is sent while it arrives from a client. Used by the thread of its exchange only.
package final class ArrivingContent: GrowingSource, @unchecked Sendable {
    package let length: Int64?
    /// The offset of the first of the present bytes.
    private var start: Int64 = 0
    private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    private var isEnded = false
    /// The offset of the next byte.
    private var position: Int64 = 0

    /// - Parameter length: the number of all bytes; `nil` if it is unknown.
    package init(length: Int64?) { self.length = length }

    /// Makes the next bytes of the content readable while `body` runs.
    package func withBytes<Value>(_ next: UnsafeRawBufferPointer, _ body: () -> Value) -> Value {
        bytes = next
        defer {
            start += Int64(next.count)
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return body()
    }

    /// Records that no more bytes follow.
    package func end() { isEnded = true }

    /// Whether bytes or the end can be read.
    var isReadable: Bool { position < start + Int64(bytes.count) || isEnded }

    package func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, orCall wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> Int? {
        guard offset >= start, offset <= start + Int64(bytes.count) else { throw .unavailable(at: offset) }
        let remaining = bytes[Int(offset - start)...]
        let count = min(buffer.count, remaining.count)
        position = offset + Int64(count)
        if count == 0 { return isEnded ? 0 : nil }
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: remaining.prefix(count)))
        return count
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        try read(into: buffer, at: offset, orCall: {}) ?? 0
    }

    package func isReadable(at offset: Int64, orCall wake: @escaping @Sendable () -> Void) -> Bool { isReadable }

    package var failure: (any Error)? { nil }
    package func acknowledged(upTo offset: Int64) {}
    package func close() {}
}
