import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A running `onward serve` with a data directory of its own.
///
/// With `ONWARD_STORE=cluster` it has a ``SharedStorage`` instead. With `ONWARD_NODES` as well, this object starts
/// several servers, and a proxy that distributes the connections to them in turn.
final class ServerProcess: TestedServer {
    /// Contains the data directory and the other files of a test.
    let directory: TemporaryDirectory
    private(set) var options: [String]
    private(set) var port: UInt16 = 0
    private(set) var process: ServerNodes
    private let environment: [String: String]
    /// The options that select the storage.
    let storage: [String]
    /// The storage that the server uses instead of a data directory; `nil` if it has a data directory.
    let shared: SharedStorage?
    /// ``storage`` of each process.
    private let storages: [[String]]
    private let ports: [UInt16]
    private let distribution: FaultProxy?
    private let connections = Counter()
    /// A program and its arguments. The program executes the command line of the server, which follows these arguments.
    private let starter: [String]

    /// The path of the data directory.
    var root: String {
        if shared != nil { Issue.record("a test without a data directory looks into it") }
        return directory.path + "/data"
    }
    /// The data directory; only without a shared storage.
    var data: ServerData { ServerData(root) }
    /// The default value of `Host`.
    var authority: String { "127.0.0.1:\(port)" }
    /// The standard error of the current process.
    var log: String { process.errorOutput }

    /// Starts a server on a fixed port, which a restart uses again, and waits until it listens.
    /// - Parameters:
    ///   - options: the options of `serve`, in addition to storage and address.
    ///   - storage: the options that select the storage; nil for a data directory.
    ///   - databaseProxy: creates a proxy to the database at `port` for the next process, and returns the port of this
    ///     proxy.
    init(
        _ options: [String] = [], environment: [String: String] = [:], startedBy starter: [String] = [],
        storage: [String]? = nil, databaseProxy: ((_ port: UInt16) throws -> UInt16)? = nil
    ) throws {
        directory = try TemporaryDirectory()
        self.options = options
        shared = storage == nil && SharedStorage.isSelected ? try SharedStorage() : nil
        self.environment = (shared?.environment ?? [:]).merging(environment) { $1 }
        self.starter = starter
        let selection = storage ?? shared?.options ?? ["--root", directory.path + "/data"]
        self.storage = selection
        let isDistributed = shared != nil && SharedStorage.nodes > 1 && !options.contains("--listen")
        ports = try (0..<(isDistributed ? SharedStorage.nodes : 1)).map { _ in try FixedPort.next() }
        distribution = isDistributed ? try FaultProxy(toEach: ports) : nil
        storages = try ports.map { [shared] _ in
            guard let shared, let databaseProxy else { return selection }
            return shared.options(databasePort: try databaseProxy(shared.database.server.port))
        }
        process = try Self.start(storages, ports, options, self.environment, starter)
        port = try Self.awaitListening(process)
        if let distribution { port = distribution.port }
    }

    deinit {
        process.kill(SIGKILL)
        let secrets = SentSecrets.collect(for: authority)
        guard !secrets.isEmpty else { return }
        let stored = StoredBytes(of: self)
        for secret in secrets {
            for place in stored.places(of: secret) {
                Issue.record("\(place) contains a secret that a request sent: \(secret.prefix(12))…")
            }
        }
    }

    // MARK: Starting and stopping

    /// Kills the server and waits until it has ended.
    func crash() throws {
        process.kill(SIGKILL)
        _ = try process.awaitEnding()
    }

    /// Sends SIGTERM and waits until the server has ended.
    func stop(within limit: Duration = .seconds(60)) throws -> ChildProcess.Ending {
        process.kill(SIGTERM)
        return try process.awaitEnding(within: limit)
    }

    /// Starts another process on the same data directory and port.
    /// - Parameter options: the new options; `nil` to keep the old options.
    func restart(_ options: [String]? = nil) throws {
        if process.ending == nil { try crash() }
        if let options { self.options = options }
        try shared?.endSessions()
        process = try Self.start(storages, distribution == nil ? [port] : ports, self.options, environment, starter)
        let started = try Self.awaitListening(process)
        if distribution == nil { port = started }
    }

    /// Sends SIGHUP, and waits until the log reports the result of the reload.
    func reload() throws {
        let before = log.utf8.count
        process.kill(SIGHUP)
        _ = try process.awaitErrorOutput { text -> Bool? in
            let addition = text.dropFirst(min(before, text.count))
            return ["was read again", "stay as they were", "stays as it was"].contains { addition.contains($0) }
                ? true : nil
        }
    }

    /// Waits until the log contains `text`, because a separate thread writes it.
    /// - Returns: the log of the current process.
    @discardableResult
    func awaitLog(_ text: String) throws -> String {
        try process.awaitErrorOutput { $0.contains(text) ? $0 : nil }
    }

    /// Starts a process that is expected to end by itself, for example because of a wrong option.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], startedBy starter: [String] = []
    ) throws -> ChildProcess {
        let command = starter + [try ExecutableLocation.onward(), "serve"] + arguments
        return try ChildProcess(command[0], Array(command.dropFirst()), environment: environment)
    }

    private static func start(
        _ storages: [[String]], _ ports: [UInt16], _ options: [String], _ environment: [String: String],
        _ starter: [String]
    ) throws -> ServerNodes {
        let hasDirectory = storages.contains { $0.contains("--root") }
        let hasDisk = hasDirectory && !options.contains("--min-free")
        var options = options
        if !hasDirectory, let place = options.firstIndex(of: "relaxed") {
            // A shared storage has no relaxed durability.
            options.removeSubrange(place - 1...place)
        }
        return ServerNodes(
            all: try zip(storages, ports).map { storage, port in
                let place = options.contains("--listen") ? [] : ["--listen", "127.0.0.1:\(port)"]
                return try run(
                    storage + place + (hasDisk ? ["--min-free", "0"] : []) + options, environment: environment,
                    startedBy: starter)
            })
    }

    /// Waits until all processes listen, and returns the port of the first one.
    private static func awaitListening(_ nodes: ServerNodes) throws -> UInt16 {
        try nodes.all.map { try awaitListening($0) }[0]
    }

    private static func awaitListening(_ process: ChildProcess) throws -> UInt16 {
        try process.awaitErrorOutput { text -> UInt16? in
            // Only complete lines are searched.
            for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
                guard let range = line.firstRange(of: "listening on ") else { continue }
                let address = line[range.upperBound...].prefix { $0 != "\"" && $0 != " " }
                if address.hasPrefix("unix:") { return 0 }
                if let colon = address.lastIndex(of: ":") {
                    return UInt16(address[address.index(after: colon)...].prefix { $0.isNumber })
                }
            }
            return nil
        }
    }

    // MARK: Requests

    /// Connects to a server directly: a proxy would also acknowledge bytes that the server has not received. If there
    /// are several servers, the connections are made to them in turn, except to those that do not accept the
    /// connection.
    /// The parameters are those of the initializer of ``RawConnection`` with a port.
    func connect(receiveBuffer: Int32? = nil, source: UInt8 = 1) throws -> RawConnection {
        let ports = distribution == nil ? [port] : ports
        let first = connections.next()
        var refusal: any Error = TestFailure("there is no server")
        for number in 0..<ports.count {
            do {
                return try RawConnection(
                    port: ports[(first + number) % ports.count], authority: authority, receiveBuffer: receiveBuffer,
                    source: source)
            } catch { refusal = error }
        }
        throw refusal
    }

    /// A connection to each of the servers.
    func connectToEach() throws -> [RawConnection] {
        try (distribution == nil ? [port] : ports).map { try RawConnection(port: $0, authority: authority) }
    }

    /// Sends one request on a new connection, like ``repeating(_:within:_:)``.
    func exchange(_ request: Request, within limit: Duration) throws -> Response {
        try repeating(request.method, within: limit) { try connect().exchange(request, within: limit) }
    }

    /// Sends a request. If another server holds the upload for longer than expected, the request is sent again, as clients do.
    func repeating(
        _ method: String, within limit: Duration = .seconds(60), _ send: () throws -> Response
    ) throws -> Response {
        let response = try pollUntil(within: limit) { () -> Response? in
            let response = try send()
            return distribution != nil && response.isOfUploadInUse(to: method) ? nil : response
        }
        guard let response else { throw TestFailure("another server holds the upload for longer than \(limit)") }
        return response
    }
}

extension ServerProcess {
    /// The processor time that the server has used, in ticks of 10 ms.
    func processorTime() throws -> Int {
        let status = FileManager.default.contents(atPath: "/proc/\(process.identifier)/stat") ?? Data()
        let fields = try #require(
            String(decoding: status, as: UTF8.self).split(separator: ")").last?.split(separator: " "))
        return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
    }
}

/// Runs `body` with a server, ends the server, and removes its data.
///
/// A server that ended by itself with an error is recorded as an issue, whatever the body did.
func withServer(
    _ options: String..., environment: [String: String] = [:], sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (ServerProcess) throws -> Void
) throws {
    try withServer(options: options, environment: environment, sourceLocation: sourceLocation, body)
}

/// Runs `body` like the function above.
func withServer(
    options: [String], environment: [String: String] = [:], sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (ServerProcess) throws -> Void
) throws {
    let server = try ServerProcess(options, environment: environment)
    defer { withExtendedLifetime(server) { server.process.kill(SIGKILL) } }
    do {
        try body(server)
    } catch {
        Issue.record(error, "The server wrote:\n\(server.log.suffix(4000))", sourceLocation: sourceLocation)
    }
    switch server.process.ending {
    case nil, .exited(0), .signaled(SIGKILL): break
    case let ending?:
        Issue.record(
            "The server ended: \(ending). It wrote:\n\(server.log.suffix(4000))", sourceLocation: sourceLocation)
    }
}

/// Runs an asynchronous `body` with a server, and ends the server.
func withServer(_ options: String..., body: (ServerProcess) async throws -> Void) async throws {
    let server = try ServerProcess(options)
    do {
        try await body(server)
    } catch {
        Issue.record(error, "The server wrote:\n\(server.log.suffix(4000))")
    }
    server.process.kill(SIGKILL)
}
