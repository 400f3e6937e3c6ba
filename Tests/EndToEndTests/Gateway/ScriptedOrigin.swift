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
    typealias Script = @Sendable (ReceivedRequest, Reply) throws -> Void

    /// The number of bytes that are kept of every request's content.
    static let keptContent = 16 << 20

    private struct State {
        var requests: [ReceivedRequest] = []
        var malformed: [String] = []
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    /// Listens on a port of the loopback interface.
    /// - Parameter path: the path of a Unix socket to listen on instead.
    init(unixPath path: String? = nil, _ script: @escaping Script) throws {
        let state = Monitor(State())
        self.state = state
        // The port is fixed, because a restart uses it again.
        let address = try path.map { SocketAddress.unix(path: $0) } ?? .tcp(host: "127.0.0.1", port: FixedPort.next())
        listener = try LoopbackListener("origin", on: address) { connection, number in
            try? Self.serve(connection, number, state, script)
            shutdown(connection.rawValue, Int32(SHUT_RDWR))
        }
    }

    /// The port; 0 on a Unix socket.
    var port: UInt16 { listener.port }

    /// The origin in the notation of `--route`.
    var url: String {
        if case .unix(let path) = listener.address { "unix:\(path)" } else { "http://127.0.0.1:\(port)" }
    }

    // MARK: Received requests

    /// All requests whose head has arrived, in order, with the content that was read of them so far.
    var requests: [ReceivedRequest] { state.withLock { $0.requests } }
    /// The inputs that are no valid requests.
    var malformed: [String] { state.withLock { $0.malformed } }
    /// The number of connections that were accepted.
    var connections: Int { listener.connections }
    /// The number of connections that are open.
    var openConnections: Int { listener.openConnections }

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
    func awaitNoConnection(within limit: Duration = .seconds(30)) -> Bool { listener.awaitNoConnection(within: limit) }

    private func wait(within limit: Duration, _ condition: (State) -> Bool) -> Bool {
        state.wait(until: Deadline(in: limit).nanoseconds) { condition($0) ? () : nil } != nil
    }

    // MARK: Listening

    /// Closes the listening socket and all connections. New connections are refused until ``restart()``.
    func stop() { listener.stop() }

    /// Listens on the same address again.
    func restart() throws { try listener.start() }

    // MARK: Connections

    private static func serve(
        _ descriptor: FileDescriptor, _ number: Int, _ state: Monitor<State>, _ script: Script
    ) throws {
        let input = PeerInput(descriptor, timeout: .seconds(60))
        while let head = try input.head() {
            guard let request = ReceivedRequest(head, connection: number) else {
                state.withLock { $0.malformed.append(String(decoding: head, as: UTF8.self)) }
                return
            }
            let place = state.withLock { state in
                state.requests.append(request)
                return state.requests.count - 1
            }
            state.notifyAll()
            let reply = Reply(to: request, on: input) { part, isComplete in
                state.withLock { $0.requests[place].note(part, isComplete: isComplete, keeping: keptContent) }
                state.notifyAll()
            }
            do {
                try script(request, reply)
            } catch let failure as WireFailure {
                if case .malformed(let text) = failure { state.withLock { $0.malformed.append(text) } }
                return
            }
            if reply.isOver { return }
            if !reply.hasReadContent { return reply.drain() }
        }
    }
}

extension Reply {
    /// Reads the remaining content and sends a response with a length.
    func respond(_ status: String = "200 OK", _ fields: [(String, String)] = [], _ content: String = "ok") throws {
        try discardContent()
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        try send("HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(content.utf8.count)\r\n\r\n\(content)")
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
