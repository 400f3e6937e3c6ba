import FoundationEssentials
import SystemCalls
import TestSupport

/// What the clients of a crash history share: when the server is up, and what its files have to be.
final class CrashWorld: Sendable {
    private struct Standing {
        var isUp = true
        /// Counts the server's lives.
        var life = 0
        /// Whether it will not be killed any more, and no upload is to be begun.
        var isEnding = false
        var isOver = false
        var files: [String: [Range<Int>]] = [:]
        var verified: Set<String> = []
        var completed = 0
        var offsets = 0
        var resumptions = 0
        var cancelled = 0
        var abandoned = 0
    }

    let port: UInt16
    let files: String
    /// After how long an upload may have expired.
    let patience: Duration
    private let standing = Monitor(Standing())

    init(port: UInt16, files: String, patience: Duration = .seconds(86400)) {
        self.port = port
        self.files = files
        self.patience = patience
    }

    // MARK: The server's life

    /// Waits until the server is up; the number of its life.
    func awaitServer() -> Int { standing.waitForever { $0.isUp ? $0.life : nil } }

    /// From now on failures are explained.
    func willCrash() { standing.withLock { $0.isUp = false } }

    func didRestart() {
        standing.withLock {
            $0.isUp = true
            $0.life += 1
        }
        standing.notifyAll()
    }

    /// Whether the server was killed since `life`.
    func hasCrashed(since life: Int) -> Bool { standing.withLock { !$0.isUp || $0.life != life } }

    func end() { standing.withLock { $0.isEnding = true } }
    func close() { standing.withLock { $0.isOver = true } }
    var isEnding: Bool { standing.withLock { $0.isEnding } }
    var isOver: Bool { standing.withLock { $0.isOver } }

    // MARK: Counting

    func countCompleted() { standing.withLock { $0.completed += 1 } }
    func countOffset() { standing.withLock { $0.offsets += 1 } }
    func countResumption() { standing.withLock { $0.resumptions += 1 } }
    func countCancelled() { standing.withLock { $0.cancelled += 1 } }
    func countAbandoned() { standing.withLock { $0.abandoned += 1 } }
    var completed: Int { standing.withLock { $0.completed } }
    /// Uploads that were begun and whose client never learnt where they are.
    var abandoned: Int { standing.withLock { $0.abandoned } }
    var summary: String {
        standing.withLock {
            "\($0.completed) uploads completed, \($0.cancelled) canceled, \($0.resumptions) resumptions, "
                + "\($0.offsets) offsets told"
        }
    }

    // MARK: Files

    /// Sets what a file may contain from now on: a part of the pool, or what it had before.
    func expect(_ name: String, _ content: Range<Int>) {
        standing.withLock { $0.files[name, default: []].append(content) }
    }

    /// The file was removed.
    func forget(_ name: String) {
        standing.withLock {
            $0.files[name] = nil
            $0.verified.remove(name)
        }
    }

    var expectedNames: [String] { standing.withLock { Array($0.files.keys) } }

    /// Whether these bytes are all of a known file.
    ///
    /// - Parameter name: asked for after the bytes were read, because what is expected may have grown meanwhile.
    func isWhole(_ data: Data, _ name: String) -> Bool {
        let contents = standing.withLock { $0.files[name] ?? [] }
        return contents.contains { $0.count == data.count && data == Data(BytePool.bytes[$0]) }
    }

    /// Whether these bytes are at `start` of a known file, or of one that has been removed meanwhile.
    func isPart(_ bytes: [UInt8], of name: String, from start: Int) -> Bool {
        guard let contents = standing.withLock({ $0.files[name] }) else { return true }
        return contents.contains { content in
            start + bytes.count <= content.count
                && BytePool.bytes[content].dropFirst(start).prefix(bytes.count).elementsEqual(bytes)
        }
    }

    /// Looks at every published file: each is one that was expected, and whole.
    ///
    /// - Parameter again: compares those that have been compared before, too.
    func inspectFiles(again: Bool = false) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: files) {
            if !again && standing.withLock({ $0.verified.contains(name) && $0.files[name]?.count == 1 }) { continue }
            guard let data = FileManager.default.contents(atPath: "\(files)/\(name)") else {
                throw TestFailure("\(name) vanished")
            }
            guard isWhole(data, name) else {
                throw TestFailure("\(name) has \(data.count) bytes, and is none of those that were sent")
            }
            standing.withLock { _ = $0.verified.insert(name) }
        }
    }

    /// Requires that a file has exactly this content.
    func require(_ name: String, _ content: Range<Int>) throws {
        guard FileManager.default.contents(atPath: "\(files)/\(name)") == Data(BytePool.bytes[content]) else {
            throw TestFailure("\(name) was told to be complete, but is not")
        }
    }
}
