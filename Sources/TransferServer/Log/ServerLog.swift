import SystemCalls

/// Logs one line for each event, as text or JSON, without tokens and complete upload URLs.
///
/// Logging never waits: entries are queued, and one thread writes them. If the output accepts nothing for so long that
/// the queue is full, further entries are dropped and counted, and a line reports their count when writing continues.
final class ServerLog: Sendable {
    private struct State {
        var queue = LogQueue<LogEntry>(maxEntries: 1024, maxBytes: 1 << 20)
        /// The time in monotonic nanoseconds at which the thread stops even if lines remain; `nil` if it must not stop.
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

    /// Logs which interim responses a request with content got, or why it got none.
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
            let text = "\(batch.dropped) log lines were dropped, because the log sink was too slow"
            let now = SystemClock.realtimeNanoseconds()
            receive(formatter.line(.message(.warning, text, request: nil, time: now)))
        }
    }

    /// Whether the deadline has passed, so lines that are not written yet are lost.
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
                let text = "\(writer.lost) log lines were dropped, because standard error was blocked or failed"
                let now = SystemClock.realtimeNanoseconds()
                writer.reportLost(formatter.line(.message(.warning, text, request: nil, time: now)))
            }
            let failed = writer.removeFailedLines()
            let isStopping = state.withLock { state in
                state.queue.countDropped(failed)
                return state.deadline != nil
            }
            // Under load this pause collects several lines for one write, and a request that logs does not have to wake
            // the thread.
            if !isStopping { SystemClock.pause(nanoseconds: 5_000_000) }
        }
    }

    /// Waits for entries; returns `nil` when the thread must end.
    private func next() -> LogQueue<LogEntry>.Batch? {
        state.waitForever { state -> LogQueue<LogEntry>.Batch?? in
            if let batch = state.queue.removeAll() { return .some(batch) }
            return state.deadline == nil ? nil : .some(nil)
        }
    }
}

/// The form of log lines.
public enum LogFormat: String, Sendable, CaseIterable {
    case text, json
}

/// The log level; each level includes the levels before it.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    case error, warning, info, debug

    private var verbosity: Int {
        switch self {
        case .error: 0
        case .warning: 1
        case .info: 2
        case .debug: 3
        }
    }

    /// Orders the levels by verbosity: `error` is the lowest, `debug` the highest.
    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.verbosity < right.verbosity
    }
}

/// The destination of the log lines of a server.
public struct LogSink: Sendable {
    enum Kind: Sendable {
        case none
        case lines(@Sendable (String) -> Void)
        case output(LogOutput)
    }

    let kind: Kind

    /// No destination: nothing is logged.
    public static let none = LogSink(kind: .none)

    /// Standard error of the process. If its reader accepts nothing, lines are dropped and counted; the server does not
    /// wait.
    public static let standardError = LogSink(kind: .output(LogOutput()))

    /// Calls `receive` with each line, without the newline at its end, on one thread of the server. While `receive`
    /// runs, further lines wait in a queue of 1024 lines and 1 MiB; those that do not fit are dropped, and a later line
    /// reports their count.
    public static func lines(_ receive: @escaping @Sendable (String) -> Void) -> LogSink {
        LogSink(kind: .lines(receive))
    }
}

/// Writes complete lines, several in one call, and never blocks in write(2). Use it from one thread.
///
/// A call writes at most ``LogOutput/atomicSize`` bytes, and only longer lines are split, so that lines do not mix on a
/// pipe that several processes share.
struct LogWriter {
    /// The number of lost lines that were not reported yet: lines that were dropped from the queue, or could not be
    /// written.
    var lost = 0
    private let output: LogOutput
    private let expired: () -> Bool
    private var failedLines = 0
    private var buffer: [UInt8] = []
    private var lines = 0
    /// Whether an error has left a line incomplete.
    private var isCut = false

    /// - Parameter expired: returns whether to stop waiting for the output.
    init(output: LogOutput, expired: @escaping () -> Bool) {
        self.output = output
        self.expired = expired
        buffer.reserveCapacity(LogOutput.atomicSize)
    }

    /// Whether lines that cannot be written immediately are lost.
    var isExpired: Bool { expired() }

    /// - Parameter line: a line without the newline at its end.
    mutating func append(_ line: String) {
        if buffer.count + line.utf8.count + 1 > LogOutput.atomicSize { flush() }
        buffer += line.utf8
        buffer.append(UInt8(ascii: "\n"))
        lines += 1
    }

    /// Writes the appended lines, waits for the output, and counts the lines that fail.
    mutating func flush() {
        guard lines > 0 else { return }
        if isCut { buffer.insert(UInt8(ascii: "\n"), at: 0) }
        let written = write()
        if written < buffer.count {
            let complete = buffer[..<written].count { $0 == UInt8(ascii: "\n") } - (isCut && written > 0 ? 1 : 0)
            failedLines += lines - complete
            lost += lines - complete
            if written > 0 { isCut = buffer[written - 1] != UInt8(ascii: "\n") }
        } else {
            isCut = false
        }
        buffer.removeAll(keepingCapacity: true)
        lines = 0
    }

    /// Writes a line that reports ``lost``. If that fails, the count is kept for the next report.
    mutating func reportLost(_ line: String) {
        let count = lost
        append(line)
        flush()
        if lost == count {
            lost = 0
        } else {
            lost = count
            failedLines -= 1
        }
    }

    /// Returns the number of failed lines since the last call.
    mutating func removeFailedLines() -> Int {
        defer { failedLines = 0 }
        return failedLines
    }

    /// Writes the buffer until it is empty, an error occurs, or waiting must stop.
    /// - Returns: the count of bytes written.
    private func write() -> Int {
        buffer.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                do throws(Errno) {
                    let remaining = UnsafeRawBufferPointer(rebasing: bytes[start...])
                    let count = try output.writeSome(remaining, waiting: isExpired ? 0 : 100)
                    start += count
                    if count > 0 { continue }
                    if isExpired { return start }
                    SystemClock.pause(nanoseconds: 1_000_000)
                } catch {
                    return start
                }
            }
            return start
        }
    }
}
