import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// An application behind a gateway. It records the exact bytes of each request and runs a script of a test for it.
///
/// The origin reads requests strictly: whatever is not a request of HTTP/1.1 is in ``malformed``, and ends its
/// connection. The script runs on the thread of the connection. If it has read the content and has not closed the
/// connection, the origin reads the next request. If it has not read the content, the connection is drained and closed.
final class ScriptedOrigin: Sendable {
    typealias Script = @Sendable (Request, Connection) throws -> Void

    /// A request as it arrived.
    struct Request: Sendable {
        /// The request line and the fields, up to and including the empty line.
        let head: [UInt8]
        let method: String
        /// The target as it arrived.
        let target: String
        let fields: Fields
        /// The number of its connection, from 1.
        let connection: Int
        /// The number of bytes of content that the script has read, without the framing of chunks.
        var contentCount: Int64 = 0
        /// The first bytes of the content, at most ``ScriptedOrigin/keptContent``.
        var content: [UInt8] = []
        /// Whether the script has read the content to its end.
        var isComplete = false

        /// The target without its query.
        var path: String { String(target.prefix { $0 != "?" }) }
        /// The head as text.
        var text: String { String(decoding: head, as: UTF8.self) }
        /// The field lines without their line endings, as they arrived.
        var lines: [String] { text.split(separator: "\r\n").dropFirst().map(String.init) }
    }

    /// The number of bytes that are kept of every request's content.
    static let keptContent = 16 << 20

    private struct State {
        var requests: [Request] = []
        var malformed: [String] = []
        var connections = 0
        var open: [Int: FileDescriptor] = [:]
        var listener: (socket: FileDescriptor, thread: WorkerThread)?
    }

    /// The port; 0 on a Unix socket.
    let port: UInt16
    private let address: SocketAddress
    private let state = Monitor(State())
    private let script: Script

    /// Listens on a port of the loopback interface.
    /// - Parameter path: the path of a Unix socket to listen on instead.
    init(unixPath path: String? = nil, _ script: @escaping Script) throws {
        self.script = script
        let wanted = try path.map { SocketAddress.unix(path: $0) } ?? .tcp(host: "127.0.0.1", port: FixedPort.next())
        let socket = try ListeningSocket(wanted)
        address = socket.address
        if case .tcp(_, let port) = socket.address { self.port = port } else { port = 0 }
        try listen(on: FileDescriptor(owning: socket.release()))
    }

    deinit { Self.stop(state) }

    /// The origin in the notation of `--route`.
    var url: String { if case .unix(let path) = address { "unix:\(path)" } else { "http://127.0.0.1:\(port)" } }

    // MARK: What has arrived

    /// All requests whose head has arrived, in order, with the content that was read of them so far.
    var requests: [Request] { state.withLock { $0.requests } }
    /// What arrived in place of a request.
    var malformed: [String] { state.withLock { $0.malformed } }
    /// The number of connections that were accepted.
    var connections: Int { state.withLock { $0.connections } }
    /// The number of connections that are open.
    var openConnections: Int { state.withLock { $0.open.count } }

    /// The number of requests for a path, without regard to the query.
    func count(of path: String) -> Int { state.withLock { $0.requests.count { $0.path == path } } }

    /// Waits until this number of requests has arrived.
    func awaitRequests(_ count: Int, within limit: Duration = .seconds(30)) -> Bool {
        wait(within: limit) { $0.requests.count >= count }
    }

    /// Waits until the script has read this many bytes of the content of a request for a path.
    func awaitContent(_ count: Int64, of path: String, within limit: Duration = .seconds(30)) -> Bool {
        wait(within: limit) { $0.requests.contains { $0.path == path && $0.contentCount >= count } }
    }

    /// Waits until no connection is open.
    func awaitNoConnection(within limit: Duration = .seconds(30)) -> Bool { wait(within: limit) { $0.open.isEmpty } }

    private func wait(within limit: Duration, _ condition: (State) -> Bool) -> Bool {
        state.wait(until: Deadline(in: limit).nanoseconds) { condition($0) ? () : nil } != nil
    }

    // MARK: Listening

    /// Closes the listening socket and all connections. New connections are refused until ``restart()``.
    func stop() { Self.stop(state) }

    /// Listens on the same address again.
    func restart() throws {
        try listen(on: FileDescriptor(owning: try ListeningSocket(address).release()))
    }

    private static func stop(_ state: Monitor<State>) {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        if let listener {
            shutdown(listener.socket.rawValue, Int32(SHUT_RDWR))
            listener.thread.join()
        }
        for connection in state.withLock({ $0.open.values }) { shutdown(connection.rawValue, Int32(SHUT_RDWR)) }
    }

    private func listen(on socket: FileDescriptor) throws {
        let thread = try WorkerThread(name: "origin") { [state, script] in
            while true {
                let accepted = accept(socket.rawValue, nil, nil)
                if accepted < 0 {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    return
                }
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                var one: Int32 = 1
                setsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
                let connection = FileDescriptor(owning: accepted)
                let number = state.withLock { state in
                    state.connections += 1
                    state.open[state.connections] = connection
                    return state.connections
                }
                state.notifyAll()
                _ = try? WorkerThread(name: "origin") {
                    try? Self.serve(connection, number, state, script)
                    shutdown(connection.rawValue, Int32(SHUT_RDWR))
                    _ = state.withLock { $0.open.removeValue(forKey: number) }
                    state.notifyAll()
                }
            }
        }
        state.withLock { $0.listener = (socket, thread) }
    }

    // MARK: Connections

    private static func serve(
        _ descriptor: FileDescriptor, _ number: Int, _ state: Monitor<State>, _ script: Script
    ) throws {
        let input = Input(descriptor)
        while let head = try input.head() {
            guard let request = Request(head, connection: number) else {
                state.withLock { $0.malformed.append(String(decoding: head, as: UTF8.self)) }
                return
            }
            let place = state.withLock { state in
                state.requests.append(request)
                return state.requests.count - 1
            }
            state.notifyAll()
            let connection = Connection(descriptor, input, request) { part, isComplete in
                state.withLock { state in
                    state.requests[place].contentCount += Int64(part.count)
                    let room = keptContent - state.requests[place].content.count
                    if room > 0 { state.requests[place].content.append(contentsOf: part.prefix(room)) }
                    state.requests[place].isComplete = isComplete
                }
                state.notifyAll()
            }
            do {
                try script(request, connection)
            } catch let failure as WireFailure {
                if case .malformed(let text) = failure { state.withLock { $0.malformed.append(text) } }
                return
            }
            if connection.isOver { return }
            if !connection.hasReadContent {
                connection.endOutput()
                _ = connection.awaitClosing(within: .seconds(30), discardingInput: true)
                return
            }
        }
    }
}

extension ScriptedOrigin.Request {
    /// Parses a head strictly; `nil` if it deviates from RFC 9112.
    fileprivate init?(_ head: [UInt8], connection: Int) {
        guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return nil }
        var lines: [ArraySlice<UInt8>] = []
        var remaining = head.dropLast(2)
        while let end = remaining.firstIndex(of: 0x0D) {
            guard end + 1 < remaining.endIndex, remaining[end + 1] == 0x0A else { return nil }
            lines.append(remaining[..<end])
            remaining = remaining[(end + 2)...]
        }
        guard remaining.isEmpty, let first = lines.first else { return nil }
        let words = String(decoding: first, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, Fields.isValidName(String(words[0])), !words[1].isEmpty, words[2] == "HTTP/1.1",
            first.allSatisfy({ $0 > 0x1F && $0 != 0x7F })
        else { return nil }
        var fields = Fields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: 0x3A) else { return nil }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            guard Fields.isValidName(name), line[colon...].allSatisfy({ $0 > 0x1F && $0 != 0x7F || $0 == 0x09 })
            else { return nil }
            fields.append(name, String(decoding: line[(colon + 1)...], as: UTF8.self))
        }
        let lengths = fields.values("Content-Length")
        let codings = fields.values("Transfer-Encoding")
        guard fields.values("Host").count == 1, lengths.count + codings.count <= 1,
            lengths.allSatisfy({ $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } && Int64($0) != nil }),
            codings.allSatisfy({ $0 == "chunked" })
        else { return nil }
        self.init(
            head: head, method: String(words[0]), target: String(words[1]), fields: fields, connection: connection)
    }
}

/// Runs `body` with a server whose only route, `/app`, leads to an origin.
/// - Parameters:
///   - settings: further settings of the route, such as `timeout=1s`.
///   - options: further options of the server.
func withGateway(
    to origin: ScriptedOrigin, _ settings: String..., options: [String] = [], _ body: (ServerProcess) throws -> Void
) throws {
    let route = (["/app=\(origin.url)", "access=open"] + settings).joined(separator: ",")
    try withServer(options: ["--route", route] + options, body)
}

/// Events by which the script of an origin and a test wait for each other.
struct Signals: Sendable {
    private let counts = Monitor<[String: Int]>([:])

    func send(_ name: String) {
        counts.withLock { $0[name, default: 0] += 1 }
        counts.notifyAll()
    }

    /// Waits until the signal was sent this many times in total.
    func wait(for name: String, count: Int = 1, within limit: Duration = .seconds(30)) -> Bool {
        counts.wait(until: Deadline(in: limit).nanoseconds) { $0[name, default: 0] >= count ? () : nil } != nil
    }
}
