import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport

/// A server that is killed before one operation on a file of its data directory, or, with a shared storage, before it sends
/// or receives one of the messages between it and the database.
struct KillableServer {
    let server: ServerProcess
    private let messages: DatabaseMessages?
    private let directory: TemporaryDirectory
    private let settings: String
    private let log: String

    /// - Parameters:
    ///   - options: the options of `serve`.
    ///   - counted: the directory below which operations are counted, as an expression of the shell. The default is the
    ///     data directory: its path is the fourth word of the command line, and is not known before the server is
    ///     started.
    ///   - number: the number of the operation after ``beginCounting()``; `nil`: the server is not killed.
    init(_ options: [String], below counted: String = "$4", killAt number: Int?) throws {
        directory = try TemporaryDirectory()
        settings = directory.path + "/settings"
        log = directory.path + "/operations"
        let starter = try directory.file(
            "start", Array("#!/bin/sh\n. \(directory.path)/settings\nexec env $preload \"$@\"\n".utf8))
        let operations = try FileOperations(below: counted, log: log)
        let words = operations.environment(killAt: number, after: directory.path + "/begun").map { "\($0)=\($1)" }
            .joined(separator: " ")
        _ = try directory.file("settings", Array("preload=\"\(words)\"\n".utf8))
        guard SharedStorage.isSelected else {
            messages = nil
            server = try ServerProcess(options, startedBy: ["/bin/sh", starter])
            return
        }
        let messages = DatabaseMessages(killAt: number)
        self.messages = messages
        server = try ServerProcess(options) { try messages.addProxy(to: $0) }
        messages.setProcesses(server.process.all.map(\.identifier))
    }

    /// The operations before which the server is killed, one for each start: all of them, or, with a shared storage, a part,
    /// because a case with several servers takes long.
    /// - Parameter count: the number of operations without a kill. A run can have one more, because the operations
    ///   vary.
    static func numbers(of count: Int) -> [Int] {
        let isPart = SharedStorage.isSelected && ProcessInfo.processInfo.environment["ONWARD_KILLS"] != "all"
        let step = isPart ? max(1, count / 12) : 1
        return Array(stride(from: 1 + Int(SeededGenerator.runSeed % UInt64(step)), through: count + 1, by: step))
    }

    /// Whether enough servers were killed. With a shared storage most messages are not those of the observed requests.
    static func areEnough(_ kills: Int, of numbers: [Int]) -> Bool {
        SharedStorage.isSelected ? kills * 8 >= numbers.count : kills * 4 > (numbers.count - 1) * 3
    }

    /// Counts the operations from now on.
    func beginCounting() throws {
        _ = try directory.file("begun", [])
        messages?.begin()
    }

    /// Waits for the end of the server that was killed. Returns false if it was not killed.
    func awaitKill() throws -> Bool {
        guard let messages else { return try server.process.awaitEnding() == .signaled(SIGKILL) }
        let killed = server.process.all.first { $0.identifier == messages.killed }
        return try killed?.awaitEnding() == .signaled(SIGKILL)
    }

    /// The number of operations since ``beginCounting()``.
    var operations: Int {
        if let messages { return messages.count }
        let text = FileManager.default.contents(atPath: log) ?? Data()
        return text.count { $0 == UInt8(ascii: "\n") }
    }

    /// Starts the server again. This time it is not killed.
    func restart() throws {
        _ = try directory.file("settings", Array("preload=\n".utf8))
        messages?.end()
        try server.restart()
    }
}

/// Counts the messages between servers and their database in both directions, and kills the server that sends or is to
/// receive one of them. This message is lost.
private final class DatabaseMessages: Sendable {
    private struct State {
        var isCounting = false
        var count = 0
        var killAt: Int?
        /// The servers, in the order of their proxies.
        var processes: [pid_t] = []
        var killed: pid_t?

        /// Returns false if the message is lost.
        mutating func pass(_ proxy: Int) -> Bool {
            guard isCounting, killed == nil else { return true }
            count += 1
            guard count == killAt, proxy < processes.count else { return true }
            killed = processes[proxy]
            kill(processes[proxy], SIGKILL)
            return false
        }
    }

    private let state: Monitor<State>
    private let proxies = Monitor<[FaultProxy]>([])

    init(killAt number: Int?) { state = Monitor(State(killAt: number)) }

    /// Adds a proxy for the next server, and returns its port.
    func addProxy(to database: UInt16) throws -> UInt16 {
        let number = proxies.withLock { $0.count }
        let proxy = try FaultProxy(toEach: [database], passes: { [state] in state.withLock { $0.pass(number) } })
        proxies.withLock { $0.append(proxy) }
        return proxy.port
    }

    func setProcesses(_ processes: [pid_t]) { state.withLock { $0.processes = processes } }

    func begin() { state.withLock { $0.isCounting = true } }
    func end() { state.withLock { $0.isCounting = false } }

    var count: Int { state.withLock { $0.count } }
    var killed: pid_t? { state.withLock { $0.killed } }
}
