import Glibc
import SystemCalls

@testable import ConformanceKit

/// A small server that implements all versions of the draft, and is correct unless it has a defect.
///
/// Creations are sent to `/files/`; Location is the URL of a finished file. The state in memory survives ``kill()``.
final class ReferenceServer: SubjectControl, Sendable {
    struct State {
        var uploads: [String: ReferenceUpload] = [:]
        var files: [String: [UInt8]] = [:]
        var connections: [Int: FileDescriptor] = [:]
        var listener: FileDescriptor?
        var count = 0
    }

    let defect: Defect?
    let allowedBehavior: AllowedServerBehavior?
    let limits: [(String, Int64)]
    /// The maximum size of one upload.
    let diskSize: Int64?
    let port: UInt16
    let state: Monitor<State>

    init(
        _ defect: Defect? = nil, limits: [(String, Int64)] = [("max-size", 100_000_000), ("max-age", 1000)],
        diskSize: Int64? = nil, with allowedBehavior: AllowedServerBehavior? = nil
    ) throws {
        self.defect = defect
        self.allowedBehavior = allowedBehavior
        self.diskSize = diskSize
        self.limits = limits
        let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        guard case .tcp(_, let port) = socket.address else { throw PeerInput.Failure.ended }
        self.port = port
        var state = State()
        state.listener = FileDescriptor(owning: socket.release())
        self.state = Monitor(state)
        try serve()
    }

    deinit { try? kill() }

    func has(_ defect: Defect) -> Bool { self.defect == defect }
    func uses(_ allowedBehavior: AllowedServerBehavior) -> Bool { self.allowedBehavior == allowedBehavior }

    var url: String { "http://127.0.0.1:\(port)/files/" }

    // MARK: - Life

    func start() throws {
        guard state.withLock({ $0.listener == nil }) else { return }
        let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: port))
        state.withLock { $0.listener = FileDescriptor(owning: socket.release()) }
        try serve()
    }

    func kill() throws {
        let (listener, connections) = state.withLock { state in
            defer {
                state.listener = nil
                state.connections = [:]
                for id in state.uploads.keys { state.uploads[id]?.crash(server: self) }
                if has(.forgetsAfterRestart) { state.uploads = [:] }
            }
            return (state.listener, state.connections.values.map { $0 })
        }
        if let listener { shutdown(listener.rawValue, Int32(SHUT_RDWR)) }
        for connection in connections { shutdown(connection.rawValue, Int32(SHUT_RDWR)) }
    }

    private func serve() throws {
        guard let listener = state.withLock({ $0.listener }) else { return }
        _ = try WorkerThread(name: "reference") { [weak self] in
            var number = 0
            while true {
                let accepted = accept(listener.rawValue, nil, nil)
                if accepted < 0 {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    return
                }
                let connection = FileDescriptor(owning: accepted)
                var one: Int32 = 1
                setsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
                number += 1
                guard let server = self else { return }
                server.state.withLock { $0.connections[number] = connection }
                _ = try? WorkerThread(name: "reference") { [weak server, number] in
                    guard let running = server else { return }
                    ReferenceSession(running, connection).run()
                    running.state.withLock { $0.connections[number] = nil }
                }
            }
        }
    }
}
