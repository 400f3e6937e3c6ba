import HTTPSemantics
import SystemCalls

/// Plays a scenario on two ports of this machine, so that there is another origin; a thread for each connection.
final class PlayedServer: Sendable {
    private static let ports = 2

    private let play: Play
    private let workers = Monitor<[WorkerThread]>([])
    /// `http://127.0.0.1:port` of both.
    let origins: [String]

    init(_ play: Play) throws {
        self.play = play
        var listeners: [FileDescriptor] = []
        var origins: [String] = []
        for _ in 0..<Self.ports {
            let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
            let listener = FileDescriptor(owning: socket.release())
            // Whoever is not listened to shall notice it after little.
            ConnectedSocket.limitReceiveBuffers(of: listener, to: 64 << 10)
            listeners.append(listener)
            guard case .tcp(_, let port) = socket.address else { throw RunFailure("no free port") }
            origins.append("http://127.0.0.1:\(port)")
        }
        self.origins = origins
        play.begin(origins: origins)
        for (origin, listener) in listeners.enumerated() {
            let worker = try WorkerThread(name: "played") { [play, workers] in
                while !play.isOver {
                    let slice = Deadline(in: .milliseconds(20)).nanoseconds
                    guard let socket = try? ConnectedSocket.accept(from: listener, until: slice) else { continue }
                    let session = try? WorkerThread(name: "played") {
                        let connection = PlayedConnection(socket, number: play.newConnection(), play: play)
                        PlayedSession(connection, play: play, origin: origin).run()
                    }
                    workers.withLock { workers in if let session { workers.append(session) } }
                }
            }
            workers.withLock { $0.append(worker) }
        }
    }

    /// Ends the play and waits until all of its threads are gone.
    func stop() {
        play.end()
        while let worker = workers.withLock({ $0.popLast() }) { worker.join() }
    }
}
