import ConformanceKit
import Glibc
import SystemCalls
import TestSupport

/// An HTTP/1.1 server on this machine that records the exact bytes of each request and runs a test's script for it.
///
/// It reads requests strictly: whatever is not a request of HTTP/1.1 is in ``malformed``, and ends its connection. The
/// script runs on the connection's thread. The connection is kept if the script has responded and has read the content.
/// Otherwise it is drained and closed after a response, and closed without a delay if there was no response.
package final class ScriptedServer: Sendable {
    package typealias Script = @Sendable (ReceivedRequest, Reply) throws -> Void

    /// The number of bytes that are kept of every request's content.
    package static let keptContent = 16 << 20

    private struct State {
        var requests: [ReceivedRequest] = []
        var malformed: [String] = []
        var now = 0
        var maxRunning = 0
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    package init(
        on address: SocketAddress = .tcp(host: "127.0.0.1", port: 0), _ script: @escaping Script
    ) throws {
        let state = Monitor(State())
        self.state = state
        listener = try LoopbackListener("scripted", on: address) { connection, number in
            try? Self.serve(connection, number, state, script)
        }
    }

    /// The port; 0 on a Unix socket.
    package var port: UInt16 { listener.port }

    /// The URL of the server; on a Unix socket its path in the notation of `--route`.
    package var url: String {
        if case .unix(let path) = listener.address { "unix:\(path)" } else { "http://127.0.0.1:\(port)" }
    }

    // MARK: Received requests

    /// All requests whose head has arrived, in order, with the content that was read of them so far.
    package var requests: [ReceivedRequest] { state.withLock { $0.requests } }
    /// The inputs that are no valid requests.
    package var malformed: [String] { state.withLock { $0.malformed } }
    /// The largest number of scripts that ran at the same time.
    package var maxConcurrentScripts: Int { state.withLock { $0.maxRunning } }
    /// The number of accepted connections.
    package var connections: Int { listener.connections }
    /// The number of connections that are open.
    package var openConnections: Int { listener.openConnections }

    /// The number of requests for a path, without regard to the query.
    package func count(of path: String) -> Int { state.withLock { $0.requests.count { $0.path == path } } }

    /// Waits until this number of requests has arrived.
    package func awaitRequests(_ count: Int, within limit: Duration = .seconds(60)) -> Bool {
        wait(within: limit) { $0.requests.count >= count }
    }

    /// Waits until the script has read this many bytes of the content of a request for a path.
    package func awaitContent(_ count: Int64, of path: String, within limit: Duration = .seconds(30)) -> Bool {
        wait(within: limit) { $0.requests.contains { $0.path == path && $0.contentCount >= count } }
    }

    /// Waits until no connection is open.
    package func awaitNoConnection(within limit: Duration = .seconds(30)) -> Bool {
        listener.awaitNoConnection(within: limit)
    }

    private func wait(within limit: Duration, _ condition: (State) -> Bool) -> Bool {
        state.wait(until: Deadline(in: limit).nanoseconds) { condition($0) ? () : nil } != nil
    }

    // MARK: Listening

    /// Closes the listening socket and all connections. New connections are refused until ``restart()``.
    package func stop() { listener.stop() }

    /// Listens on the same address again.
    package func restart() throws { try listener.start() }

    // MARK: Connections

    private static func serve(
        _ connection: FileDescriptor, _ number: Int, _ state: Monitor<State>, _ script: Script
    ) throws {
        let input = PeerInput(connection, timeout: .seconds(60))
        while let head = try input.head() {
            guard let request = ReceivedRequest(head, connection: number) else {
                return state.withLock { $0.malformed.append(String(decoding: head, as: UTF8.self)) }
            }
            let place = state.withLock { state in
                state.requests.append(request)
                state.now += 1
                state.maxRunning = max(state.maxRunning, state.now)
                return state.requests.count - 1
            }
            state.notifyAll()
            defer { state.withLock { $0.now -= 1 } }
            let reply = Reply(to: request, on: input) { part, isComplete in
                state.withLock { $0.requests[place].note(part, isComplete: isComplete, keeping: keptContent) }
                state.notifyAll()
            }
            do {
                try script(request, reply)
            } catch WireFailure.malformed(let text) {
                return state.withLock { $0.malformed.append(text) }
            }
            if reply.isOver || !reply.isAnswered { return }
            if !reply.hasReadContent { return reply.drain() }
        }
    }
}
