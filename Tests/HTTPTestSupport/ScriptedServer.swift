import ConformanceKit
import Glibc
import SystemCalls
import TestSupport

/// An HTTP/1.1 server on the loopback interface that runs a test's script for every request.
///
/// The script runs on the connection's thread. The connection is kept if the script has responded and has read the
/// content. Otherwise it is drained and closed after a response, and closed without a delay if there was no response.
package final class ScriptedServer: Sendable {
    package typealias Script = @Sendable (ReceivedRequest, Reply) throws -> Void

    /// The number of bytes that are kept of every request's content.
    private static let keptContent = 4 << 20

    private struct State {
        var requests: [ReceivedRequest] = []
        var now = 0
        var maxRunning = 0
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    package init(_ script: @escaping Script) throws {
        let state = Monitor(State())
        self.state = state
        listener = try LoopbackListener("scripted") { connection, number in
            try? Self.serve(connection, number, state, script)
        }
    }

    package var port: UInt16 { listener.port }
    package var url: String { "http://127.0.0.1:\(port)" }
    /// All requests whose head has arrived, in order, with the content that was read of them so far.
    package var requests: [ReceivedRequest] { state.withLock { $0.requests } }
    /// The largest number of scripts that ran at the same time.
    package var maxConcurrentScripts: Int { state.withLock { $0.maxRunning } }
    /// The number of accepted connections.
    package var connections: Int { listener.connections }

    /// Waits until this number of requests has arrived.
    package func awaitRequests(_ count: Int, within limit: Duration = .seconds(60)) -> Bool {
        state.wait(until: Deadline(in: limit).nanoseconds) { $0.requests.count >= count ? () : nil } != nil
    }

    private static func serve(
        _ connection: FileDescriptor, _ number: Int, _ state: Monitor<State>, _ script: Script
    ) throws {
        let input = PeerInput(connection)
        while let head = try input.head() {
            guard let request = ReceivedRequest(head, connection: number) else {
                throw WireFailure.malformed(String(decoding: head, as: UTF8.self))
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
            }
            try script(request, reply)
            if reply.isOver || !reply.isAnswered { return }
            if !reply.hasReadContent { return reply.drain() }
        }
    }
}
