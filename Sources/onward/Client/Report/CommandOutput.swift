import SystemCalls

/// The output of a command to one descriptor. A separate thread writes the output, so that a pipe without a reader, or
/// a stopped terminal, does not delay a transfer.
final class CommandOutput: Sendable {
    enum Entry: Sendable {
        /// Complete lines without the final line feed.
        case lines(String)
        /// A line that the next `position` or `progress` entry replaces if the line is the newest one in the queue.
        case position(String)
        /// The same as `position`, but on the terminal the next entry of any kind erases the line.
        case progress(ProgressLine)

        fileprivate var isReplaceable: Bool {
            if case .lines = self { false } else { true }
        }

        fileprivate var size: Int {
            switch self {
            case .lines(let text), .position(let text): text.utf8.count
            case .progress(let line): line.name.utf8.count
            }
        }
    }

    private struct State {
        var queue = LogQueue<Entry>(maxBytes: 8 << 20)
        var hasThread = false
        /// Whether the thread is writing entries that it has removed from the queue.
        var isWriting = false
    }

    private let descriptor: Int32
    private let state = Monitor(State())
    /// The line that reports how many entries were dropped.
    private let dropped: @Sendable (Int) -> String

    init(descriptor: Int32, dropped: @escaping @Sendable (Int) -> String) {
        self.descriptor = descriptor
        self.dropped = dropped
    }

    /// Adds an entry to the queue without waiting. Only if the system cannot create a thread, this method writes the
    /// entry itself and can block.
    func append(_ entry: Entry) {
        let hasThread = state.withLock { state in
            if entry.isReplaceable {
                state.queue.append(entry, size: entry.size) { $0.isReplaceable }
            } else {
                state.queue.append(entry, size: entry.size)
            }
            if !state.hasThread { state.hasThread = start() }
            return state.hasThread
        }
        state.notifyAll()
        if !hasThread {
            var line = TerminalLine()
            if let batch = state.withLock({ $0.queue.removeAll() }) { write(batch, &line) }
        }
    }

    /// Waits until everything is written.
    /// - Parameter limit: the maximum time in nanoseconds, after which the remaining output is lost; `nil` for no
    ///   limit.
    func finish(within limit: Int64?) {
        let deadline = limit.map { SystemClock.monotonicNanoseconds() + $0 }
        _ = state.wait(until: deadline) { $0.queue.isEmpty && !$0.isWriting ? () : nil }
    }

    /// Starts the thread, which ends with the process. It is started only when there is something to write, because the
    /// thread that waits for signals must be the first thread.
    private func start() -> Bool {
        let thread = try? WorkerThread(name: "output") { [self] in
            var line = TerminalLine()
            while true {
                let batch = state.waitForever { state -> LogQueue<Entry>.Batch? in
                    let batch = state.queue.removeAll()
                    state.isWriting = batch != nil
                    return batch
                }
                write(batch, &line)
                state.withLock { $0.isWriting = false }
                state.notifyAll()
            }
        }
        return thread != nil
    }

    private func write(_ batch: LogQueue<Entry>.Batch, _ line: inout TerminalLine) {
        for entry in batch.entries { put(entry, &line) }
        if batch.dropped > 0 { put(.lines(dropped(batch.dropped)), &line) }
    }

    private func put(_ entry: Entry, _ line: inout TerminalLine) {
        let columns = Terminal.columns(of: descriptor) ?? 80
        let text =
            switch entry {
            case .lines(let text), .position(let text): line.erase(columns: columns) + text + "\n"
            case .progress(let progress):
                // The last column stays free, because a terminal would begin a new line after it.
                line.replace(with: progress.text(columns: max(1, columns - 1)), columns: columns)
            }
        LogOutput(descriptor: descriptor).write(text, waiting: -1)
    }
}

/// A line of a terminal that is written repeatedly.
struct TerminalLine: Sendable, Hashable {
    /// The width of the current text in columns; 0 if there is no text.
    private(set) var shown = 0

    /// Returns the characters to write so that `text` replaces the shown text.
    /// - Parameter columns: the current width of the window.
    mutating func replace(with text: String, columns: Int) -> String {
        let erasure = erase(columns: columns)
        shown = DisplayText.width(text)
        return erasure + text
    }

    /// The control sequence that erases the text.
    ///
    /// A window that has become narrower may have wrapped the old text: the first row of the text is then above the row
    /// of the cursor.
    mutating func erase(columns: Int) -> String {
        guard shown > 0 else { return "" }
        let rows = columns > 0 ? (shown - 1) / columns : 0
        shown = 0
        return "\r" + (rows > 0 ? "\u{1B}[\(rows)A" : "") + "\u{1B}[J"
    }
}
