import HTTPTransport
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// One exchange with a ``MockTransport``. It sends and receives with the same types as libcurl's exchanges.
final class MockExchange: ExchangeCommands {
    private struct State {
        var sender: ContentSender?
        var receiver: ResponseReceiver
        var exchange: TransportExchange?
        var task: Task<Void, Never>?
        /// The number of changes for which the exchange may have waited.
        var changes = 0
        var waiter: CheckedContinuation<Void, Never>?
        var times: ExchangeTimes
        var reports: ProgressReports
        /// Waits for the next report of the progress.
        var reportTimer: Task<Void, any Error>?
    }

    private let request: TransportRequest
    private let state: Monitor<State>
    private let wakeUp = WakeUp()

    /// Sources and sinks call this object to continue the exchange, which is set when it starts.
    private final class WakeUp: Sendable {
        let exchange = Monitor<MockExchange?>(nil)
        func callAsFunction() { exchange.withLock { $0 }?.proceed() }
    }

    init(_ request: TransportRequest) {
        self.request = request
        let now = SystemClock.monotonicNanoseconds()
        var times = ExchangeTimes(startedAt: now)
        times.requestStart = now
        let pacer = request.rateLimit.map { RatePacer(rate: $0, now: now) }
        let wake: @Sendable () -> Void = { [wakeUp] in wakeUp() }
        var sender: ContentSender?
        if request.sentContent != .none {
            sender = ContentSender(
                request.sentContent, of: request.source, hasGate: request.gate != nil, pacer: pacer, wake: wake)
        } else {
            times.requestEnd = now
        }
        let receiver = ResponseReceiver(request, pacer: pacer, wake: wake)
        state = Monitor(
            State(sender: sender, receiver: receiver, times: times, reports: ProgressReports(startedAt: now)))
    }

    /// - Parameter ended: called when the exchange has ended.
    func run(
        _ exchange: TransportExchange, _ number: Int, _ transport: MockTransport, ended: @escaping @Sendable () -> Void
    ) {
        wakeUp.exchange.withLock { $0 = self }
        state.withLock { $0.exchange = exchange }
        let task = Task {
            let failure = await answer(number, transport)
            end(failure)
            wakeUp.exchange.withLock { $0 = nil }
            ended()
        }
        state.withLock { state in
            if state.exchange == nil { task.cancel() } else { state.task = task }
        }
    }

    /// - Returns: the reason why the response is incomplete; `nil` if it is complete.
    private func answer(_ number: Int, _ transport: MockTransport) async -> TransportFailure? {
        guard Fields.isValidName(request.method.rawValue), request.fields.firstInvalid == nil else {
            return .invalidRequest
        }
        let gate = request.gate.map { gate in
            Task {
                try await Task.sleep(for: gate)
                openGate()
            }
        }
        defer { gate?.cancel() }
        do {
            let response = try await transport.answer(
                MockRequest(
                    method: request.method, uri: request.uri, fields: request.fields, number: number, exchange: self))
            try await send(response)
            return nil
        } catch let failure as MockFailure {
            return failure.transportFailure
        } catch let failure as TransportFailure {
            return failure
        } catch {
            return .connectionLost(code: 0, message: "\(error)")
        }
    }

    private func end(_ failure: TransportFailure?) {
        let ended = state.withLock { state -> State in
            let ended = state
            state.exchange = nil
            state.waiter = nil
            state.task = nil
            state.reportTimer = nil
            return ended
        }
        if let exchange = ended.exchange {
            let result = result(ended, failure)
            if result.sent > 0 { exchange.report(.sent(result.sent)) }
            if result.received > 0 { exchange.report(.received(result.received)) }
            exchange.end(result)
        }
        ended.waiter?.resume()
        ended.reportTimer?.cancel()
        // The closure may still run after a cancellation.
        ended.task?.cancel()
    }

    private func result(_ state: State, _ failure: TransportFailure?) -> TransportResult {
        let receiver = state.receiver
        // A connection that is lost after the complete response has arrived is no failure.
        let isLost = failure.map { if case .connectionLost = $0 { true } else { false } } ?? false
        let isOver = receiver.isSatisfied || (isLost && receiver.isComplete)
        let failure = isOver ? nil : receiver.failure ?? state.sender?.failure ?? failure
        var metrics = state.times.metrics(
            method: request.method, head: receiver.head, now: SystemClock.monotonicNanoseconds())
        metrics.sent = state.sender?.readCount ?? 0
        metrics.received = receiver.received
        return TransportResult(
            head: receiver.head, content: receiver.content, sent: metrics.sent, received: receiver.received,
            hasSourceEnded: state.sender?.isAtEnd(sent: metrics.sent) ?? false, failure: failure,
            isContentComplete: failure == nil && !receiver.isSatisfied, metrics: metrics)
    }

    // MARK: Commands

    func post(_ command: ExchangeCommand, to exchange: TransportExchange) {
        switch command {
        case .openGate: openGate()
        case .proceed: proceed()
        case .noteProgress: break
        case .cancel: end(.canceled)
        }
    }

    private func openGate() {
        change { state in
            state.sender?.openGate()
            state.sender?.release()
        }
    }

    fileprivate func proceed() {
        change { state in
            state.sender?.release()
            state.receiver.release()
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            state.changes += 1
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Waits until the number of changes is no longer `changes`, or until the rate allows more bytes.
    private func wait(_ changes: Int, until time: Int64?) async {
        let timer = time.map { time in
            Task {
                try await Task.sleep(for: .nanoseconds(max(time - SystemClock.monotonicNanoseconds(), 0)))
                proceed()
            }
        }
        await withCheckedContinuation { continuation in
            let hasChanged = state.withLock { state in
                let hasChanged = state.changes != changes || state.exchange == nil
                if !hasChanged { state.waiter = continuation }
                return hasChanged
            }
            if hasChanged { continuation.resume() }
        }
        timer?.cancel()
    }

    /// Reports the progress if a report is due, or when it is due.
    private func reportProgress() {
        state.withLock { state in
            guard let exchange = state.exchange else { return }
            state.reports.report(
                sent: state.sender?.readCount, received: state.receiver.received,
                now: SystemClock.monotonicNanoseconds(),
                to: exchange.report)
            guard state.reportTimer == nil, let time = state.reports.nextTime else { return }
            state.reportTimer = Task { [self] in
                try await Task.sleep(for: .nanoseconds(max(time - SystemClock.monotonicNanoseconds(), 0)))
                self.state.withLock { $0.reportTimer = nil }
                reportProgress()
            }
        }
    }

    // MARK: Content and responses

    private enum Step {
        case bytes(Int)
        case wait(changes: Int, until: Int64?)
    }

    func readContent(atMost limit: Int) async throws -> [UInt8] {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while content.count < limit {
            let wanted = min(buffer.count, limit - content.count)
            let step = try buffer.withUnsafeMutableBytes { try read(into: .init(rebasing: $0[..<wanted])) }
            switch step {
            case .bytes(0): return content
            case .bytes(let count): content += buffer[..<count]
            case .wait(let changes, let time): await wait(changes, until: time)
            }
        }
        return content
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Step {
        let step = try state.withLock { state in
            guard state.exchange != nil else { throw TransportFailure.canceled }
            let count = state.sender?.read(into: buffer, now: SystemClock.monotonicNanoseconds()) ?? 0
            if let failure = state.sender?.failure { throw failure }
            if state.sender?.isHeld == true {
                return Step.wait(changes: state.changes, until: state.sender?.resumesAt)
            }
            if state.times.requestEnd == nil, state.sender.map({ $0.isAtEnd(sent: $0.readCount) }) == true {
                state.times.requestEnd = SystemClock.monotonicNanoseconds()
            }
            return .bytes(count)
        }
        reportProgress()
        return step
    }

    /// Sends the head of a response.
    func send(_ status: Status, _ fields: Fields) throws {
        let lines =
            ["HTTP/1.1 \(status.rawValue) \(status.reasonPhrase)"] + fields.map { "\($0.name): \($0.value)" } + [""]
        let (events, exchange) = try state.withLock { state in
            guard let exchange = state.exchange else { throw TransportFailure.canceled }
            if state.times.responseStart == nil { state.times.responseStart = SystemClock.monotonicNanoseconds() }
            let events = lines.compactMap { line in
                Array("\(line)\r\n".utf8).withUnsafeBytes { state.receiver.header($0) }
            }
            if let failure = state.receiver.failure { throw failure }
            return (events, exchange)
        }
        events.forEach(exchange.report)
    }

    private func send(_ response: MockResponse) async throws {
        var fields = response.fields
        let hasLength = fields.contains("Content-Length") || fields.contains("Transfer-Encoding")
        if !hasLength, ![.noContent, .notModified].contains(response.status) {
            fields.append("Content-Length", "\(response.content.count)")
        }
        try send(response.status, fields)
        if request.method == .head { return }
        var remaining = response.content.prefix(response.cutAt ?? .max)
        while !remaining.isEmpty {
            let piece = remaining.prefix(16 << 10)
            switch try piece.withUnsafeBytes({ try receive($0) }) {
            case .bytes(0): return
            case .bytes: remaining = remaining.dropFirst(piece.count)
            case .wait(let changes, let time): await wait(changes, until: time)
            }
        }
        if response.cutAt != nil { throw MockFailure.connectionLost }
    }

    /// - Returns: 0 bytes if no more are accepted.
    private func receive(_ bytes: UnsafeRawBufferPointer) throws -> Step {
        let step = try state.withLock { state -> Step in
            guard state.exchange != nil else { throw TransportFailure.canceled }
            return switch state.receiver.write(bytes, now: SystemClock.monotonicNanoseconds()) {
            case .accepted: .bytes(bytes.count)
            case .held: .wait(changes: state.changes, until: state.receiver.resumesAt)
            case .refused: .bytes(0)
            }
        }
        reportProgress()
        return step
    }
}
