import SystemCalls

/// Logs one line for each event, as text or JSON, without tokens and complete upload URLs.
///
/// Logging never waits: entries are queued, and one thread writes them. If the output accepts nothing for so long that
/// the queue is full, further entries are dropped and counted, and a line reports their count when writing continues.
final class ServerLog: Sendable {
    private struct State {
        var queue = LogQueue<LogEntry>(maxEntries: 1024, maxBytes: 1 << 20)
        /// The time in monotonic nanoseconds at which the thread stops even if lines remain; nil if it must not stop.
        var deadline: Int64?
        /// Whether the writing thread runs.
        var isWriting = false
    }

    private let format: LogFormat
    private let level: LogLevel
    private let sink: LogSink.Kind
    private let state = Monitor(State())

    init(format: LogFormat, level: LogLevel, sink: LogSink) {
        self.format = format
        self.level = level
        self.sink = sink.kind
    }

    func error(_ message: String, request: RequestID? = nil) { log(.error, message, request: request) }
    func warning(_ message: String, request: RequestID? = nil) { log(.warning, message, request: request) }
    func info(_ message: String) { log(.info, message, request: nil) }

    /// Logs why a request with content got no interim response.
    func explain(_ summary: RequestSummary) {
        guard let explanation = summary.explanation else { return }
        let request = "\(summary.method.printable(32)) \(LoggedTarget(summary.target).text)"
        log(.info, "explain \(request): \(explanation.sentence)", request: summary.id)
    }

    /// Logs the access log line of one request.
    func record(_ summary: RequestSummary) {
        guard level >= .info else { return }
        append(.request(summary, time: SystemClock.realtimeNanoseconds()))
    }

    /// The number of dropped entries.
    var droppedLines: Int { state.withLock { $0.queue.droppedTotal } }

    private func log(_ severity: LogLevel, _ message: String, request: RequestID?) {
        guard level >= severity else { return }
        append(.message(severity, message, request: request, time: SystemClock.realtimeNanoseconds()))
    }

    private func append(_ entry: LogEntry) {
        if case .none = sink { return }
        state.withLock { $0.queue.append(entry, size: entry.size) }
        state.notifyAll()
    }

    // MARK: - The thread that writes

    /// Starts the writing thread. It also writes the entries that were logged before this call.
    /// - Throws: `EAGAIN` if the system cannot create a thread.
    func start() throws(Errno) {
        state.withLock { $0.deadline = nil }
        state.withLock { $0.isWriting = true }
        do throws(Errno) {
            _ = try WorkerThread(name: "log") { [self] in
                write()
                state.withLock { $0.isWriting = false }
                state.notifyAll()
            }
        } catch {
            state.withLock { $0.isWriting = false }
            throw error
        }
    }

    /// Writes the queued entries for at most `nanoseconds`, and ends the thread. If no thread runs, the caller writes.
    func stop(within nanoseconds: Int64) {
        let deadline = SystemClock.monotonicNanoseconds() + nanoseconds
        let isWriting = state.withLock { state in
            state.deadline = deadline
            return state.isWriting
        }
        state.notifyAll()
        if !isWriting { return write() }
        // Another process can fill a pipe between poll(2) and write(2), and the thread then stays blocked. So the wait
        // for the thread also has a limit.
        _ = state.wait(until: deadline + 500_000_000) { $0.isWriting ? nil : true }
    }

    private func write() {
        switch sink {
        case .none: return
        case .lines(let receive): write(to: receive)
        case .output(let output): write(to: output)
        }
    }

    private func write(to receive: (String) -> Void) {
        var formatter = LogFormatter(format)
        while let batch = next() {
            for entry in batch.entries where !isExpired { receive(formatter.line(entry)) }
            if batch.dropped == 0 || isExpired { continue }
            let text = "\(batch.dropped) log lines were dropped: the receiver of lines was too slow"
            let now = SystemClock.realtimeNanoseconds()
            receive(formatter.line(.message(.warning, text, request: nil, time: now)))
        }
    }

    /// Whether the deadline has passed, so that lines that are not written yet are lost.
    private var isExpired: Bool {
        state.withLock { $0.deadline.map { $0 <= SystemClock.monotonicNanoseconds() } ?? false }
    }

    private func write(to output: LogOutput) {
        var formatter = LogFormatter(format)
        var writer = LogWriter(output: output) { [self] in
            isExpired
        }
        while let batch = next() {
            for entry in batch.entries where !writer.isExpired { writer.append(formatter.line(entry)) }
            writer.flush()
            writer.lost += batch.dropped
            if writer.lost > 0 {
                let text = "\(writer.lost) log lines were dropped: standard error accepted nothing, or failed"
                let now = SystemClock.realtimeNanoseconds()
                writer.reportLost(formatter.line(.message(.warning, text, request: nil, time: now)))
            }
            let failed = writer.takeFailedLines()
            let isStopping = state.withLock { state in
                state.queue.countDropped(failed)
                return state.deadline != nil
            }
            // Under load this pause collects several lines for one write, and a request that logs does not have to wake
            // the thread.
            if !isStopping { SystemClock.pause(nanoseconds: 5_000_000) }
        }
    }

    /// Waits for entries; returns nil when the thread must end.
    private func next() -> LogQueue<LogEntry>.Batch? {
        state.waitForever { state -> LogQueue<LogEntry>.Batch?? in
            if let batch = state.queue.removeAll() { return .some(batch) }
            return state.deadline == nil ? nil : .some(nil)
        }
    }
}
