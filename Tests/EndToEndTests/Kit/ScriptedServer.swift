import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport

/// An HTTP/1.1 server on the loopback interface that runs a test's script for every request.
///
/// The script runs on the connection's thread. The connection is kept if the script has responded and has read the
/// content. Otherwise it is drained and closed after a response, and closed without a delay if there was no response.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (ReceivedRequest, Reply) throws -> Void

    /// The number of bytes that are kept of every request's content.
    static let keptContent = 4 << 20

    private struct State {
        var requests: [ReceivedRequest] = []
        var now = 0
        var maxRunning = 0
        var connections = 0
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    init(_ script: @escaping Script) throws {
        let state = Monitor(State())
        self.state = state
        listener = try LoopbackListener("scripted") { connection, number in
            state.withLock { $0.connections = max($0.connections, number) }
            try? Self.serve(connection, number, state, script)
        }
    }

    var port: UInt16 { listener.port }
    var url: String { "http://127.0.0.1:\(port)" }
    /// All requests whose head has arrived, in order, with the content that was read of them so far.
    var requests: [ReceivedRequest] { state.withLock { $0.requests } }
    /// The largest number of scripts that ran at the same time.
    var maxConcurrentScripts: Int { state.withLock { $0.maxRunning } }
    /// The number of accepted connections.
    var connections: Int { state.withLock { $0.connections } }

    /// Waits until this number of requests has arrived.
    func awaitRequests(_ count: Int, within limit: Duration = .seconds(60)) -> Bool {
        state.wait(until: Deadline(in: limit).nanoseconds) { $0.requests.count >= count ? () : nil } != nil
    }

    private static func serve(
        _ connection: FileDescriptor, _ number: Int, _ state: Monitor<State>, _ script: Script
    ) throws {
        let input = ConnectionInput(connection)
        while true {
            let request = try readHead(input, number)
            let place = state.withLock { state in
                state.requests.append(request)
                state.now += 1
                state.maxRunning = max(state.maxRunning, state.now)
                return state.requests.count - 1
            }
            state.notifyAll()
            defer { state.withLock { $0.now -= 1 } }
            let reply = Reply(to: request, on: connection, input) { bytes, isComplete in
                state.withLock { state in
                    state.requests[place].contentCount += Int64(bytes.count)
                    let room = keptContent - state.requests[place].content.count
                    state.requests[place].content.append(contentsOf: bytes.prefix(room))
                    state.requests[place].hasReadContent = isComplete
                }
            }
            try script(request, reply)
            if reply.isOver || !reply.isAnswered { return }
            if !reply.hasReadContent { return reply.drain() }
        }
    }

    private static func readHead(_ input: ConnectionInput, _ number: Int) throws -> ReceivedRequest {
        let line = try input.line()
        let parts = line.split(separator: " ").map(String.init)
        guard parts.count == 3 else { throw WireFailure.malformed(line) }
        var fields = Fields()
        while case let line = try input.line(), !line.isEmpty {
            guard let colon = line.firstIndex(of: ":") else { throw WireFailure.malformed(line) }
            fields.append(String(line[..<colon]), String(line[line.index(after: colon)...]))
        }
        return ReceivedRequest(
            method: parts[0], target: parts[1], fields: fields, connection: number, arrivedAt: .now)
    }
}
