import HTTPSemantics
import SystemCalls

/// Serves a scenario on two ports of this machine, so that clients see two origins. Each connection has its own thread.
final class ScenarioServer: Sendable {
    private static let ports = 2

    private let shared: ScenarioState
    private let workers = Monitor<[WorkerThread]>([])
    /// The URLs of both origins, such as `http://127.0.0.1:8080`.
    let origins: [String]

    init(_ shared: ScenarioState) throws {
        self.shared = shared
        var listeners: [FileDescriptor] = []
        var origins: [String] = []
        for _ in 0..<Self.ports {
            let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
            let listener = FileDescriptor(owning: socket.release())
            // With small buffers, a client is blocked soon after the server stops reading its content.
            ConnectedSocket.limitReceiveBuffers(of: listener, to: 64 << 10)
            listeners.append(listener)
            guard case .tcp(_, let port) = socket.address else { throw RunFailure("no free port") }
            origins.append("http://127.0.0.1:\(port)")
        }
        self.origins = origins
        shared.begin(origins: origins)
        for (origin, listener) in listeners.enumerated() {
            let worker = try WorkerThread(name: "scripted") { [shared, workers] in
                while !shared.isOver {
                    let slice = Deadline(in: .milliseconds(20)).nanoseconds
                    guard let socket = try? ConnectedSocket.accept(from: listener, until: slice) else { continue }
                    let session = try? WorkerThread(name: "scripted") {
                        let connection = ScriptedConnection(socket, number: shared.newConnection(), shared: shared)
                        ScriptedSession(connection, shared: shared, origin: origin).run()
                    }
                    workers.withLock { workers in if let session { workers.append(session) } }
                }
            }
            workers.withLock { $0.append(worker) }
        }
    }

    /// Ends the scenario and waits until all of its threads have ended.
    func stop() {
        shared.end()
        while let worker = workers.withLock({ $0.popLast() }) { worker.join() }
    }
}
