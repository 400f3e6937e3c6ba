import SystemCalls

/// The progress of all files of a command with several files.
final class GroupProgress: Sendable {
    /// The number of files and the sum of their sizes.
    struct Total: Sendable, Hashable {
        var count: Int
        var bytes: Int64
    }

    private struct State {
        var total: Total?
        var finishedFiles = 0
        var finishedBytes: Int64 = 0
        /// The number of finished files that were not transferred, because they exist unchanged on the other side.
        var unchangedFiles = 0
        /// The number of files whose transfer has failed or was interrupted.
        var failedFiles = 0
        /// The positions of the transfers that are running.
        var running: [FilePath: Int64] = [:]
        /// The bytes that earlier runs have transferred.
        var kept: Int64 = 0
        /// The time at which the last line was written, in seconds.
        var lastLine: Double
        var isStopNoted = false
        var isServerFull = false
    }

    /// The absolute path of the folder that the command transfers; `nil` for a command with several files. The files of
    /// a folder are not reported one by one to a person.
    let folder: FilePath?
    private let start: Double
    private let state: Monitor<State>

    /// - Parameters:
    ///   - total: all files; `nil` if they are not known.
    ///   - now: the time in seconds, as for all times of this type.
    init(folder: FilePath? = nil, total: Total?, now: Double) {
        self.folder = folder
        start = now
        state = Monitor(State(total: total, lastLine: now))
    }

    func setTotal(_ total: Total) { state.withLock { $0.total = total } }

    /// - Parameter kept: the number of bytes that earlier runs have transferred.
    func begin(_ path: FilePath, kept: Int64) {
        state.withLock { state in
            state.kept += kept - (state.running[path] ?? 0)
            state.running[path] = kept
        }
    }

    func update(_ path: FilePath, moved: Int64) { state.withLock { $0.running[path] = moved } }

    /// - Parameter size: the size of the file if it was transferred completely; `nil` if its transfer has failed.
    func end(_ path: FilePath, size: Int64?, isUnchanged: Bool = false) {
        state.withLock { state in
            state.running[path] = nil
            guard let size else {
                state.failedFiles += 1
                return
            }
            state.finishedFiles += 1
            state.finishedBytes += size
            if isUnchanged { state.unchangedFiles += 1 }
        }
    }

    /// The line for all files.
    func line(now: Double) -> ProgressLine {
        state.withLock { state in
            let moved = state.running.values.reduce(state.finishedBytes, +)
            let rate = now - start >= 0.5 ? Double(max(0, moved - state.kept)) / (now - start) : nil
            let name =
                state.total.map { "\(state.finishedFiles) of \($0.count) files" }
                ?? Self.files(state.finishedFiles)
            return ProgressLine(name: name, done: moved, total: state.total?.bytes, rate: rate)
        }
    }

    /// The result of a command for a folder, as a sentence for people.
    /// - Parameter verb: "Sent" or "Received".
    func summary(_ verb: String, now: Double) -> String {
        state.withLock { state in
            let moved = max(0, state.finishedBytes - state.kept)
            let seconds = now - start
            let speed = moved > 0 && seconds >= 0.1 ? ", \(Amount.rate(Double(moved) / seconds))" : ""
            var text = "\(verb) \(Self.files(state.finishedFiles - state.unchangedFiles))"
            text += " (\(Amount.bytes(moved)) in \(Amount.elapsed(seconds))\(speed))"
            if state.unchangedFiles > 0 { text += "; \(state.unchangedFiles) unchanged" }
            if state.failedFiles > 0 { text += "; \(state.failedFiles) failed" }
            return text + "."
        }
    }

    private static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

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
