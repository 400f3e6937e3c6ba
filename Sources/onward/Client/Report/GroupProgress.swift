import SystemCalls

/// The progress of all files of a command with several files.
final class GroupProgress: Sendable {
    private struct State {
        var finishedFiles = 0
        var finishedBytes: Int64 = 0
        /// The positions of the transfers that are running.
        var running: [FilePath: Int64] = [:]
        /// The bytes that earlier runs have sent.
        var kept: Int64 = 0
        /// The time at which the last line was written, in seconds.
        var lastLine: Double
        var isStopNoted = false
        var isServerFull = false
    }

    private let count: Int
    private let total: Int64
    private let start: Double
    private let state: Monitor<State>

    /// - Parameters:
    ///   - count: the number of files.
    ///   - total: the sum of their sizes in bytes.
    ///   - now: the time in seconds, as for all times of this type.
    init(count: Int, total: Int64, now: Double) {
        self.count = count
        self.total = total
        start = now
        state = Monitor(State(lastLine: now))
    }

    /// - Parameter kept: the number of bytes that earlier runs have sent.
    func begin(_ path: FilePath, kept: Int64) {
        state.withLock { state in
            state.kept += kept - (state.running[path] ?? 0)
            state.running[path] = kept
        }
    }

    func update(_ path: FilePath, moved: Int64) { state.withLock { $0.running[path] = moved } }

    /// - Parameter size: the size of the file if it was sent completely; `nil` if its transfer has failed.
    func end(_ path: FilePath, size: Int64?) {
        state.withLock { state in
            state.running[path] = nil
            guard let size else { return }
            state.finishedFiles += 1
            state.finishedBytes += size
        }
    }

    /// The line for all files.
    func line(now: Double) -> ProgressLine {
        state.withLock { state in
            let moved = state.running.values.reduce(state.finishedBytes, +)
            let rate = now - start >= 0.5 ? Double(max(0, moved - state.kept)) / (now - start) : nil
            return ProgressLine(name: "\(state.finishedFiles) of \(count) files", done: moved, total: total, rate: rate)
        }
    }

    /// Whether the next of the lines at intervals is due. If it is, the caller writes it.
    /// - Parameter interval: in seconds.
    func isLineDue(now: Double, interval: Double) -> Bool {
        state.withLock { state in
            guard now - state.lastLine >= interval else { return false }
            state.lastLine = now
            return true
        }
    }

    /// Whether the server has refused a new upload with 429 or 503, because it accepts no more at the same time.
    var isServerFull: Bool { state.withLock { $0.isServerFull } }

    func noteFullServer() { state.withLock { $0.isServerFull = true } }

    /// Returns true for the first call only.
    func noteStop() -> Bool {
        state.withLock { state in
            defer { state.isStopNoted = true }
            return !state.isStopNoted
        }
    }
}
