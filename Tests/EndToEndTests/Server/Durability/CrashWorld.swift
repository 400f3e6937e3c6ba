import FoundationEssentials
import SystemCalls
import TestSupport

/// The place of the published files.
enum PublishedStorage: Sendable {
    case directory(String)
    case shared(SharedStorage)

    init(of server: ServerProcess) {
        self = if let shared = server.shared { .shared(shared) } else { .directory(server.root + "/files") }
    }

    func names() throws -> [String] {
        switch self {
        case .directory(let path): try FileManager.default.contentsOfDirectory(atPath: path)
        case .shared(let shared): try shared.publishedNames()
        }
    }

    /// The content of a file; `nil` if there is no such file.
    func content(_ name: String) throws -> Data? {
        switch self {
        case .directory(let path): FileManager.default.contents(atPath: "\(path)/\(name)")
        case .shared(let shared): try shared.published(name).map { Data($0) }
        }
    }
}

/// The state that the clients of a crash history share: whether the server is up, and the content of its files.
final class CrashWorld: Sendable {
    private struct State {
        var isUp = true
        /// The number of restarts of the server.
        var life = 0
        /// Whether the kills have ended. After that no new upload is started.
        var isEnding = false
        var isOver = false
        var files: [String: [Range<Int>]] = [:]
        var verified: Set<String> = []
        var completed = 0
        var offsets = 0
        var resumptions = 0
        var canceled = 0
        var unfinished = 0
    }

    let port: UInt16
    private let storage: PublishedStorage
    /// The age at which an upload may have expired.
    let lifetime: Duration
    private let state = Monitor(State())

    init(_ server: ServerProcess, lifetime: Duration = .seconds(86400)) {
        port = server.port
        storage = PublishedStorage(of: server)
        self.lifetime = lifetime
    }

    // MARK: Starts and crashes

    /// Waits until the server is up, and returns the number of its restarts.
    func awaitServer() -> Int { state.waitForever { $0.isUp ? $0.life : nil } }

    /// From now on, failures of clients are expected.
    func willCrash() { state.withLock { $0.isUp = false } }

    func didRestart() {
        state.withLock {
            $0.isUp = true
            $0.life += 1
        }
        state.notifyAll()
    }

    /// Whether the server was killed after ``awaitServer()`` returned `life`.
    func hasCrashed(since life: Int) -> Bool { state.withLock { !$0.isUp || $0.life != life } }

    func end() { state.withLock { $0.isEnding = true } }
    func close() { state.withLock { $0.isOver = true } }
    var isEnding: Bool { state.withLock { $0.isEnding } }
    var isOver: Bool { state.withLock { $0.isOver } }

    // MARK: Counting

    func countCompleted() { state.withLock { $0.completed += 1 } }
    func countOffset() { state.withLock { $0.offsets += 1 } }
    func countResumption() { state.withLock { $0.resumptions += 1 } }
    func countCanceled() { state.withLock { $0.canceled += 1 } }
    func countUnfinished() { state.withLock { $0.unfinished += 1 } }
    var completed: Int { state.withLock { $0.completed } }
    /// The number of created uploads whose location no client got.
    var unfinished: Int { state.withLock { $0.unfinished } }
    var summary: String {
        state.withLock {
            "\($0.completed) uploads completed, \($0.canceled) canceled, \($0.resumptions) resumptions, "
                + "\($0.offsets) offsets reported"
        }
    }

    // MARK: Files

    /// Permits that a file has this part of the pool as its content. Contents that were permitted before are still permitted.
    func expect(_ name: String, _ content: Range<Int>) {
        state.withLock { $0.files[name, default: []].append(content) }
    }

    /// Forgets a file that was removed.
    func forget(_ name: String) {
        state.withLock {
            $0.files[name] = nil
            $0.verified.remove(name)
        }
    }

    var expectedNames: [String] { state.withLock { Array($0.files.keys) } }

    /// Whether the data is a complete permitted content of the file.
    ///
    /// - Parameter name: the file. Call this after reading the data: contents permitted in the meantime count, too.
    func isComplete(_ data: Data, _ name: String) -> Bool {
        let contents = state.withLock { $0.files[name] ?? [] }
        return contents.contains { $0.count == data.count && data == Data(BytePool.bytes[$0]) }
    }

    /// Whether the bytes are at `start` of a permitted content of the file. True if the file has been removed.
    func isPart(_ bytes: [UInt8], of name: String, from start: Int) -> Bool {
        guard let contents = state.withLock({ $0.files[name] }) else { return true }
        return contents.contains { content in
            start + bytes.count <= content.count
                && areEqual(BytePool.bytes[content].dropFirst(start).prefix(bytes.count), bytes)
        }
    }

    func publishedNames() throws -> [String] { try storage.names() }

    /// Checks that each published file has a complete permitted content.
    ///
    /// - Parameter again: whether files that were checked before are checked again.
    func inspectFiles(again: Bool = false) throws {
        for name in try storage.names() {
            if !again && state.withLock({ $0.verified.contains(name) && $0.files[name]?.count == 1 }) { continue }
            guard let data = try storage.content(name) else {
                throw TestFailure("\(name) vanished")
            }
            guard isComplete(data, name) else {
                throw TestFailure("\(name) has \(data.count) bytes, and a content that no client sent")
            }
            state.withLock { _ = $0.verified.insert(name) }
        }
    }

    /// Requires that a file has exactly this content.
    func require(_ name: String, _ content: Range<Int>) throws {
        guard try storage.content(name) == Data(BytePool.bytes[content]) else {
            throw TestFailure("\(name) was reported as complete, but does not have its expected content")
        }
    }
}
