import CCurl
import HTTPSemantics
import SystemCalls

/// A running exchange. Used on the thread of the engine only.
final class ActiveTransfer {
    /// The next step of the loop.
    enum Step {
        case proceed
        case end(TransportFailure?)
        case endWithCode(CURLcode)
    }

    /// The time in nanoseconds for which a server may send nothing during an early response. After that the response
    /// counts as ended.
    static let maxEarlySilence: Int64 = 600_000_000

    let easy: EasyHandle
    private let report: (TransportEvent) -> Void
    /// Whether progress is reported and the result has metrics.
    private let isMeasured: Bool
    private var sender: ContentSender?
    private var receiver: ResponseReceiver
    private var watch: ActivityWatch
    private var reports: ProgressReports
    private let gate: Int64?
    private let isRepeatable: Bool
    /// Whether the stall timeout limits the time to make a connection.
    private let isStallLimit: Bool
    private let uri: String
    private let method: Method
    private var times: ExchangeTimes
    private var gateOpensAt: Int64?
    private let sockets: ConnectionSockets
    private var use: ConnectionSockets.Use?
    private var isConnected = false
    /// The number of calls of ``noteProgress()``.
    private var progress: Int64 = 0
    /// Whether sending was stopped because the final head arrived before all content was sent.
    private var hasStoppedSending = false
    /// Whether sending is paused, so that libcurl reads what has arrived before it sends more.
    private var isPausedForInput = false
    private var hasPausedForInput = false
    /// Whether something has happened since the last call of ``keepTime(_:)``.
    private var hasChanged = true
    /// Whether libcurl may send content from its buffer, without reporting that.
    private var isSending = false
    /// The time of the next call of ``keepTime(_:)`` if nothing happens before.
    private var dueAt = Int64.max

    /// - Parameters:
    ///   - easy: a handle that is prepared for the request.
    ///   - wake: called on any thread when the transfer has to ``proceed()``.
    ///   - report: called with each event.
    init(
        _ request: TransportRequest, _ easy: EasyHandle, _ sockets: ConnectionSockets,
        wake: @escaping @Sendable () -> Void, report: @escaping (TransportEvent) -> Void
    ) {
        let now = SystemClock.monotonicNanoseconds()
        let pacer = request.rateLimit.map { RatePacer(rate: $0, now: now) }
        self.easy = easy
        self.sockets = sockets
        self.report = report
        isMeasured = request.isMeasured
        gate = request.gate?.nanoseconds
        isRepeatable = request.isRepeatable
        uri = request.uri
        method = request.method
        times = ExchangeTimes(startedAt: now)
        reports = ProgressReports(startedAt: now)
        isStallLimit = request.connectTimeout == request.stallTimeout
        receiver = ResponseReceiver(request, pacer: pacer, wake: wake)
        watch = ActivityWatch(limit: request.stallTimeout, now: now)
        if request.sentContent != .none, request.contentWithHead == nil {
            sender = ContentSender(
                request.sentContent, of: request.source, hasGate: gate != nil, pacer: pacer, wake: wake)
        }
    }

    // MARK: The time

    /// The time at which ``keepTime(_:)`` has to be called, in monotonic nanoseconds. It can be in the past.
    var nextTime: Int64 { hasChanged ? 0 : dueAt }

    /// Whether ``keepTime(_:)`` has to be called now that libcurl has done its work.
    func isDue(_ now: Int64) -> Bool { isSending || nextTime <= now }

    func openGate() -> Step {
        hasChanged = true
        gateOpensAt = nil
        guard sender?.isGated == true else { return .proceed }
        sender?.openGate()
        // libcurl does not accept a resumption before it has a connection (curl_easy_pause:
        // CURLE_BAD_FUNCTION_ARGUMENT).
        guard sender?.isHeld == true else { return .proceed }
        sender?.release()
        return resume()
    }

    /// Continues the transfer after the source or the sink has become ready.
    func proceed() -> Step {
        hasChanged = true
        let isSourceReady = sender?.isAwaitingSource == true
        guard isSourceReady || receiver.isAwaitingSink else { return .proceed }
        if isSourceReady { sender?.release() }
        if receiver.isAwaitingSink { receiver.release() }
        return resume()
    }

    /// Notes progress that the numbers of sent and received bytes do not show.
    func noteProgress() {
        hasChanged = true
        progress += 1
    }

    /// Reports progress, and pauses, resumes or ends the transfer if it is time to do so.
    /// - Parameter now: monotonic nanoseconds.
    func keepTime(_ now: Int64) -> Step {
        hasChanged = false
        watch.note(moved: easy.bytesSent + receiver.moved + progress, isWaiting: isWaiting, now: now)
        if isMeasured {
            noteRequestEnd(now)
            reports.report(sent: sent, received: receiver.received, now: now, to: report)
        }
        if hasEarlyHead, receiver.isComplete || hasStoppedSending && now >= earlyEnd { return .end(nil) }
        if let deadline = receiver.deadline, now >= deadline { return .end(nil) }
        if watch.isStalled(now: now, output: unacknowledgedOutput) { return .end(stall) }
        var next = min(watch.nextTime ?? .max, reports.nextTime ?? .max, receiver.deadline ?? .max)
        let hasStopped = stopSending(now, &next)
        let hasInput = endPauseForInput()
        let isDue = releaseAtRate(now, &next) || hasInput || hasStopped
        if let time = gateOpensAt {
            if now >= time { return openGate() }
            next = min(next, time)
        }
        if isDue, case .endWithCode(let code) = resume() { return .endWithCode(code) }
        dueAt = next
        isSending = sender.map { !$0.isHeld && !isSent($0) } ?? false
        return .proceed
    }

    /// Whether no byte can move because this side waits: for the connection, the gate, the rate limit, the source or the
    /// sink.
    private var isWaiting: Bool {
        if !isConnected || receiver.isHeld { return true }
        guard receiver.head == nil, let sender else { return false }
        return sender.isGated || sender.resumesAt != nil || sender.isAwaitingSource
    }

    /// The failure if no byte has moved for too long.
    private var stall: TransportFailure {
        guard !receiver.hasBegun, let proxy = easy.proxy(for: uri) else { return .stalled }
        return .proxy(.stalled(proxy))
    }

    private func unacknowledgedOutput() -> Int32? {
        openSocket.flatMap { SocketState(descriptor: $0).unacknowledgedOutput }
    }

    /// The socket of the request; `nil` if there is none or it is closed.
    private var openSocket: Int32? {
        use.flatMap { sockets.isOpen($0.socket) ? $0.socket : nil }
    }

    /// Whether the final head has arrived before all content was sent. The server then needs no more content.
    private var hasEarlyHead: Bool {
        guard receiver.head != nil, let sender else { return false }
        return !isSent(sender)
    }

    /// The time at which an early response counts as ended if the server sends nothing more.
    private var earlyEnd: Int64 { watch.lastActivity + Self.maxEarlySilence }

    /// Stops sending once the response has begun: first sending is paused. After half of ``maxEarlySilence`` the content
    /// is aborted, so that libcurl sends the bytes in its buffer. After that, ``keepTime(_:)`` ends the transfer.
    ///
    /// After an error status, libcurl stops by itself on some connections. In all other cases libcurl does not detect
    /// the end of the response while sending is paused.
    /// - Returns: whether libcurl has to be resumed.
    private func stopSending(_ now: Int64, _ next: inout Int64) -> Bool {
        guard hasEarlyHead else { return false }
        if !hasStoppedSending {
            hasStoppedSending = true
            // The server would read the next request on this connection as content of this one.
            easy.forbidReuse()
            gateOpensAt = nil
            sender?.release()
            next = min(next, now + Self.maxEarlySilence / 2)
            return true
        }
        if sender?.isAborted == true {
            next = min(next, earlyEnd)
            return false
        }
        let abortTime = watch.lastActivity + Self.maxEarlySilence / 2
        guard now >= abortTime else {
            next = min(next, abortTime)
            return false
        }
        sender?.abort()
        sender?.release()
        return true
    }

    private func endPauseForInput() -> Bool {
        guard isPausedForInput else { return false }
        isPausedForInput = false
        hasPausedForInput = true
        sender?.release()
        return true
    }

    private func releaseAtRate(_ now: Int64, _ next: inout Int64) -> Bool {
        var isDue = false
        if let time = sender?.resumesAt {
            if now >= time {
                sender?.release()
                isDue = true
            } else {
                next = min(next, time)
            }
        }
        if let time = receiver.resumesAt {
            if now >= time {
                receiver.release()
                isDue = true
            } else {
                next = min(next, time)
            }
        }
        return isDue
    }

    private func resume() -> Step {
        let code = easy.hold(sending: sender?.isHeld == true, receiving: receiver.isHeld)
        return code == CURLE_OK ? .proceed : .endWithCode(code)
    }

    // MARK: The end

    /// The number of bytes of content sent so far; `nil` if the request has no content.
    private var sent: Int64? {
        sender.map { $0.sent(easy.bytesSent, isHTTP2: receiver.head != nil && easy.isHTTP2) }
    }

    /// The result of an exchange that libcurl has ended with `code`.
    func result(_ code: CURLcode) -> TransportResult {
        let unread = releaseSocket()
        if receiver.isSatisfied { return result(nil, isContentComplete: false) }
        if let failure = receiver.failure ?? sender?.failure { return result(failure, isContentComplete: false) }
        if code == CURLE_OK {
            let isAnswered = receiver.head != nil
            return result(
                isAnswered ? nil : .protocolViolation("There is no final response."), isContentComplete: isAnswered)
        }
        // A write to a connection that was reset fails, and libcurl reads nothing more. A response that arrived before
        // the reset (RFC 9112 section 9.6) is then still unread.
        if receiver.head == nil, let unread { receiver.receive(unread: unread).forEach(report) }
        // A connection that is lost after the complete response has arrived is no failure.
        if receiver.isComplete { return result(nil) }
        // Newer versions of libcurl report an error if the content ends before its stated length.
        if code == CURLE_READ_ERROR, sender?.isAborted == true { return result(nil, isContentComplete: false) }
        let failure = TransportFailure(
            code, of: easy, requestURI: uri, isConnected: isConnected, isStallLimit: isStallLimit)
        return result(failure, isContentComplete: false)
    }

    /// - Returns: the input that was unread when the socket was closed.
    private func releaseSocket() -> [UInt8]? {
        defer { use = nil }
        return use.flatMap { sockets.release($0) }
    }

    func result(_ failure: TransportFailure?) -> TransportResult {
        result(failure, isContentComplete: receiver.isComplete)
    }

    private func result(_ failure: TransportFailure?, isContentComplete: Bool) -> TransportResult {
        _ = releaseSocket()
        let sent = sent
        if isMeasured {
            if let sent { report(.sent(sent)) }
            if receiver.received > 0 { report(.received(receiver.received)) }
        }
        return TransportResult(
            head: receiver.head, content: receiver.content, sent: sent ?? easy.bytesSent, received: receiver.received,
            hasSourceEnded: sender?.isAtEnd(sent: sent ?? 0) ?? false, failure: failure,
            isContentComplete: isContentComplete,
            metrics: isMeasured ? metrics(sent: sent ?? 0) : nil)
    }

    /// Notes the time of the end of the request if the complete request was passed to the kernel.
    private func noteRequestEnd(_ now: Int64) {
        guard times.requestEnd == nil, isConnected else { return }
        if let sender, !isSent(sender) { return }
        times.requestEnd = now
    }

    /// Whether all content was passed to the kernel.
    private func isSent(_ sender: ContentSender) -> Bool {
        sender.isSent(easy.bytesSent, isHTTP2: receiver.head != nil && easy.isHTTP2)
    }

    private func metrics(sent: Int64) -> RequestMetrics {
        let now = SystemClock.monotonicNanoseconds()
        noteRequestEnd(now)
        var metrics = times.metrics(method: method, head: receiver.head, now: now)
        metrics.sent = sent
        metrics.received = receiver.received
        if times.requestStart != nil { easy.describeConnection(in: &metrics, to: uri) }
        if !metrics.isConnectionReused {
            metrics.nameLookup = easy.time(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connect = easy.time(CURLINFO_CONNECT_TIME_T)
            metrics.secureConnect = easy.time(CURLINFO_APPCONNECT_TIME_T)
        }
        return metrics
    }
}

// MARK: - libcurl's calls

extension ActiveTransfer: EasyHandle.Delegate {
    func willSend(localPort: Int32) -> Bool {
        hasChanged = true
        if times.requestStart != nil && !isRepeatable { return false }
        let now = SystemClock.monotonicNanoseconds()
        isConnected = true
        _ = releaseSocket()
        use = sockets.use(localPort: localPort)
        times.requestStart = now
        watch.note(moved: 0, isWaiting: true, now: now)
        if let gate, sender?.isGated == true, gateOpensAt == nil { gateOpensAt = now + gate }
        return true
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        hasChanged = true
        guard let before = sender else { return 0 }
        if receiver.head != nil, !before.isAborted { return sender?.hold() ?? 0 }
        let count = sender?.read(into: buffer, now: SystemClock.monotonicNanoseconds()) ?? 0
        // A server that has responded early may reset the connection. Then a write would fail, and the response would
        // be lost, so the response has to be read first.
        if count > 0, count <= buffer.count, !hasPausedForInput, let socket = openSocket,
            SocketState(descriptor: socket).hasInput
        {
            sender = before
            isPausedForInput = true
            return sender?.hold() ?? 0
        }
        hasPausedForInput = false
        return count
    }

    func rewind() -> Bool { sender?.canRewind() ?? true }

    func header(_ line: UnsafeRawBufferPointer) -> Bool {
        hasChanged = true
        if times.responseStart == nil {
            let now = SystemClock.monotonicNanoseconds()
            noteRequestEnd(now)
            times.responseStart = now
        }
        if let event = receiver.header(line) {
            report(event)
        }
        return receiver.failure == nil
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> ContentAcceptance {
        hasChanged = true
        return receiver.write(bytes, now: SystemClock.monotonicNanoseconds())
    }
}
