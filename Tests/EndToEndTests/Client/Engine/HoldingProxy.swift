import Glibc
import SystemCalls
import TestSupport

/// A proxy between a client and a server that holds back what the client sends, so that an upload stays in progress for
/// as long as a test needs.
final class HoldingProxy: Sendable {
    private struct State {
        /// The number of bytes that are passed on for each connection; `nil` if there is no limit.
        var limit: Int?
        var connections: Set<Int32> = []
    }

    let port: UInt16
    private let listener: FileDescriptor
    private let state: Monitor<State>

    /// A direction in which bytes are held back.
    enum Direction {
        case toServer
        case toClient
    }

    /// - Parameters:
    ///   - limit: the number of bytes that are passed on for each connection until ``release()``.
    ///   - direction: the direction that the limit applies to; the proxy passes on all bytes of the other one.
    init(upstream: UInt16, limit: Int, direction: Direction = .toServer) throws {
        let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        guard case .tcp(_, let port) = socket.address else { throw TestFailure("no port") }
        self.port = port
        let listener = FileDescriptor(owning: socket.release())
        let state = Monitor(State(limit: limit))
        self.listener = listener
        self.state = state
        _ = try WorkerThread(name: "holding-proxy") {
            while true {
                let client = accept(listener.rawValue, nil, nil)
                if client < 0 && errno == EINTR { continue }
                guard client >= 0 else { return }
                state.withLock { _ = $0.connections.insert(client) }
                Self.serve(client, upstream, state, direction)
            }
        }
    }

    deinit {
        state.withLock { state in
            state.limit = nil
            for descriptor in state.connections { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        state.notifyAll()
        shutdown(listener.rawValue, Int32(SHUT_RDWR))
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// Passes on all bytes from now on.
    func release() {
        state.withLock { $0.limit = nil }
        state.notifyAll()
    }

    private static func serve(
        _ client: Int32, _ upstream: UInt16, _ state: Monitor<State>, _ direction: Direction
    ) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = upstream.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let backward = try? WorkerThread(name: "proxy-backward") {
            pass(from: server, to: client, direction == .toClient ? state : nil)
        }
        _ = try? WorkerThread(name: "proxy-forward") {
            pass(from: client, to: server, direction == .toServer ? state : nil)
            shutdown(server, Int32(SHUT_RDWR))
            shutdown(client, Int32(SHUT_RDWR))
            backward?.join()
            // The descriptor is closed under the lock, so that `deinit` cannot shut down a descriptor that was used
            // again for something else.
            state.withLock { state in
                state.connections.remove(client)
                close(client)
            }
            close(server)
        }
    }

    /// - Parameter state: contains the limit of the bytes that are passed on; `nil` if there is no limit.
    private static func pass(from source: Int32, to destination: Int32, _ state: Monitor<State>?) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var passed = 0
        while true {
            if let state, passed >= state.withLock({ $0.limit ?? .max }) {
                // 0x2000 is POLLRDHUP of poll(2), which Swift does not import. With this event, poll(2) also returns
                // after the client has closed the connection.
                var entry = pollfd(fd: source, events: 0x2000, revents: 0)
                while state.withLock({ passed >= $0.limit ?? .max }) {
                    if poll(&entry, 1, 10) != 0 { return }
                }
            }
            let count = recv(source, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            var sent = 0
            while sent < count {
                let part = buffer.withUnsafeBytes {
                    send(destination, $0.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL))
                }
                guard part > 0 else { return }
                sent += part
            }
            passed += count
        }
    }
}
