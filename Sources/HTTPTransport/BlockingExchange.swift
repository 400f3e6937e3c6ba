import HTTPSemantics
import SystemCalls

/// Sends requests to one server, each on the thread that waits for its response. The connections are used again, also for
/// requests of other threads.
package final class BlockingTransport: Sendable {
    private let maxIdle: Int
    /// In nanoseconds.
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
    /// All requests of a transport have the same URI and settings, and neither a gate nor a maximum rate. Their
    /// ``TransportRequest/receive`` is not called: the content of the response is read from the exchange.
    /// - Parameter content: the source of the request if its content does not exist in advance.
    package func start(_ request: TransportRequest, content: ArrivingContent? = nil) -> BlockingExchange {
        // A server may be about to close a connection of an earlier request.
        let connection = (request.needsNewConnection ? nil : idleConnection()) ?? PooledConnection()
        return BlockingExchange(request, content, connection, self)
    }

    private func idleConnection() -> PooledConnection? {
        // The connection that was used last is the least likely to have been closed by the server.
        let connection = idle.withLock { $0.popLast() }
        connection?.multi.sockets.endConnectionsWithUnrequestedInput()
        return connection
    }

    fileprivate func keep(_ connection: PooledConnection) {
        let now = SystemClock.monotonicNanoseconds()
        connection.idleSince = now
        let unused: [PooledConnection] = idle.withLock { idle in
            idle.append(connection)
            let count = idle.prefix { $0.idleSince < now - maxIdleTime }.count
            let surplus = max(count, idle.count - maxIdle)
            defer { idle.removeFirst(surplus) }
            return Array(idle.prefix(surplus))
        }
        // They are closed outside the lock.
        withExtendedLifetime(unused) {}
    }
}

/// A multi handle that has one request, and therefore one connection, at a time.
private final class PooledConnection: @unchecked Sendable {
    // One thread at a time uses it: the one that has removed it from the idle connections.
    let multi = MultiHandle()
    var idleSince: Int64 = 0
}

/// One request and its response, which the waiting thread performs by calling ``step(until:)``. One thread at a time uses
/// it.
package final class BlockingExchange {
    private let transport: BlockingTransport
    private let content: ArrivingContent?
    private let response = ReceivedResponse()
    // Both are nil after the end.
    private var connection: PooledConnection?
    private var transfer: ActiveTransfer?
    /// The time at which the transfer has something to do, in monotonic nanoseconds.
    private var nextTime = Int64.max
    /// The result; `nil` if the exchange has not ended.
    package private(set) var result: TransportResult?
    /// Whether the request, or a part of it, may have been sent.
    package private(set) var mayBeSent = false
    private var wasSending = false
    /// Whether the connection is kept for other requests. If every request of a server needs a new connection, kept ones
    /// would never be used.
    private let mayKeep: Bool

    fileprivate init(
        _ request: TransportRequest, _ content: ArrivingContent?, _ connection: PooledConnection,
        _ transport: BlockingTransport
    ) {
        self.content = content
        self.transport = transport
        mayKeep = !request.needsNewConnection
        guard Fields.isValidName(request.method.rawValue), request.fields.firstInvalid == nil else {
            result = TransportResult(.invalidRequest)
            return
        }
        var request = request
        request.receive = { [response] head in
            response.head = head
            return .write(response)
        }
        // Easy handles are not used again: libcurl before 8.5 keeps a pointer to a freed field of the previous response, and
        // accesses it if the next response begins with a folded line.
        guard let easy = EasyHandle() else {
            result = TransportResult(.outOfMemory)
            return
        }
        easy.setSockets(connection.multi.sockets)
        easy.prepare(request)
        let transfer = ActiveTransfer(request, easy, connection.multi.sockets, isMeasured: false, wake: {}) {
            [response] event in
            if case .interim(let head) = event { response.interims.append(head) }
        }
        guard connection.multi.add(easy, delegate: transfer) else {
            result = TransportResult(.outOfMemory)
            return
        }
        self.transfer = transfer
        self.connection = connection
        perform()
    }

    deinit { cancel() }

    /// Ends the exchange as ``TransportFailure/cancelled`` unless it has ended.
    package func cancel() {
        guard let transfer else { return }
        end(transfer.result(.cancelled))
    }

    /// Continues the exchange: does everything that is possible now, or waits until something is.
    /// - Parameter deadline: the end of the wait, in monotonic nanoseconds.
    /// - Returns: false if the deadline has passed and the exchange has not ended.
    @discardableResult
    package func step(until deadline: Int64) -> Bool {
        guard let transfer, let connection else { return true }
        let now = SystemClock.monotonicNanoseconds()
        let isResumable =
            transfer.isAwaitingSink && response.hasRoom
            || transfer.isAwaitingSource && content?.isReadable == true
        if isResumable {
            // The server is not responsible for the time since the last call.
            transfer.noteWait(now)
            guard follow(transfer.proceed()) else { return true }
        } else {
            connection.multi.wait(Int32(clamping: (max(min(deadline, nextTime) - now, 0) + 999_999) / 1_000_000))
        }
        return perform() < deadline
    }

    /// - Returns: the time in monotonic nanoseconds; the minimum if the exchange has ended.
    @discardableResult
    private func perform() -> Int64 {
        guard let transfer, let connection else { return .min }
        connection.multi.perform()
        if let (_, code) = connection.multi.nextEnded() {
            end(transfer.result(code))
            return .min
        }
        let now = SystemClock.monotonicNanoseconds()
        return follow(transfer.keepTime(now)) ? now : .min
    }

    /// - Returns: whether the exchange continues.
    private func follow(_ step: ActiveTransfer.Step) -> Bool {
        guard let transfer else { return false }
        switch step {
        case .proceed(let until):
            nextTime = until ?? .max
            return true
        case .end(let failure): end(transfer.result(failure))
        case .endWithCode(let code): end(transfer.result(code))
        }
        return false
    }

    private func end(_ result: TransportResult) {
        guard let transfer, let connection else { return }
        mayBeSent = transfer.mayBeSent
        wasSending = isSending
        self.transfer = nil
        self.connection = nil
        self.result = result
        connection.multi.remove(transfer.easy)
        if mayKeep, connection.multi.sockets.isAnyOpen { transport.keep(connection) }
    }

    // MARK: The request

    /// Whether bytes of the request wait until they can be passed to the kernel, or did so at the end.
    package var isSending: Bool {
        guard let transfer else { return wasSending }
        return !transfer.isSent && !(transfer.isAwaitingSource && content?.isReadable == false)
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

/// The parts of a response that have arrived and were not read.
private final class ReceivedResponse: BodySink, @unchecked Sendable {
    // Used by the thread of the exchange only.
    private static let capacity = 256 << 10

    var interims: [ClientResponseHead] = []
    var head: ClientResponseHead?
    private var bytes: [UInt8] = []
    /// The number of bytes at the beginning of `bytes` that were read.
    private var consumed = 0

    var hasRoom: Bool { bytes.count - consumed < Self.capacity }

    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool { hasRoom }

    func write(_ new: UnsafeRawBufferPointer) throws(Errno) {
        // A reader that never reaches the end must not make the array longer and longer.
        if consumed >= Self.capacity {
            bytes.removeFirst(consumed)
            consumed = 0
        }
        bytes += new
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, bytes.count - consumed)
        bytes.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[consumed..<consumed + count]))
        }
        consumed += count
        if consumed == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            consumed = 0
        }
        return count
    }

    func readAll() -> [UInt8] {
        defer { (bytes, consumed) = ([], 0) }
        return consumed == 0 ? bytes : Array(bytes[consumed...])
    }
}

/// The content of a request that is sent while it arrives. Used by the thread of its exchange only.
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

    /// No more bytes follow.
    package func end() { isEnded = true }

    /// Whether bytes or the end can be read.
    var isReadable: Bool { position < start + Int64(bytes.count) || isEnded }

    /// libcurl can read the last bytes again: see `ActiveTransfer.read(into:)`.
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
