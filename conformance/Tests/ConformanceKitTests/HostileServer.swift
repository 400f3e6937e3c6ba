import Glibc
import SystemCalls

/// Calls a function for each connection on a separate thread, and closes the connection afterwards.
final class HostileServer: Sendable {
    let port: UInt16
    private let listener: FileDescriptor

    init(_ serve: @escaping @Sendable (FileDescriptor) -> Void) throws {
        let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        guard case .tcp(_, let port) = socket.address else { throw PeerInput.Failure.ended }
        self.port = port
        let listener = FileDescriptor(owning: socket.release())
        self.listener = listener
        _ = try WorkerThread(name: "hostile") {
            while true {
                let accepted = accept(listener.rawValue, nil, nil)
                if accepted < 0 {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    return
                }
                let connection = FileDescriptor(owning: accepted)
                _ = try? WorkerThread(name: "hostile") { serve(connection) }
            }
        }
    }

    deinit { shutdown(listener.rawValue, Int32(SHUT_RDWR)) }
}
