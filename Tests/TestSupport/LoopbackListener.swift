import Glibc
import SystemCalls

/// Accepts connections on a port of the loopback interface, or on a Unix socket, and serves each on its own thread. The
/// connections are closed when this object is released.
package final class LoopbackListener: Sendable {
    package typealias Service = @Sendable (_ connection: FileDescriptor, _ number: Int) -> Void

    private struct State {
        var listener: (socket: FileDescriptor, thread: WorkerThread)?
        var accepted = 0
        var open: [Int: FileDescriptor] = [:]
    }

    package let address: SocketAddress
    private let name: String
    private let serve: Service
    private let state = Monitor(State())

    /// - Parameter serve: receives a connection and its number, from 1. The connection is closed when `serve` returns.
    package init(
        _ name: String, on address: SocketAddress = .tcp(host: "127.0.0.1", port: 0), _ serve: @escaping Service
    ) throws {
        let listening = try ListeningSocket(address)
        self.address = listening.address
        self.name = name
        self.serve = serve
        try accept(on: FileDescriptor(owning: listening.release()))
    }

    deinit {
        let (listener, connections) = state.withLock { ($0.listener, $0.open.values) }
        if let listener { shutdown(listener.socket.rawValue, Int32(SHUT_RDWR)) }
        for connection in connections { shutdown(connection.rawValue, Int32(SHUT_RDWR)) }
    }

    /// The port; 0 on a Unix socket.
    package var port: UInt16 { if case .tcp(_, let port) = address { port } else { 0 } }
    /// The number of connections that were accepted.
    package var connections: Int { state.withLock { $0.accepted } }
    /// The number of connections that are open.
    package var openConnections: Int { state.withLock { $0.open.count } }

    /// Waits until no connection is open.
    package func awaitNoConnection(within limit: Duration) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + limit.nanoseconds
        return state.wait(until: deadline) { $0.open.isEmpty ? () : nil } != nil
    }

    /// Closes the listening socket and all connections. New connections are refused until ``start()``.
    package func stop() {
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

    /// Listens on the same address again after ``stop()``.
    package func start() throws {
        if state.withLock({ $0.listener != nil }) { return }
        try accept(on: FileDescriptor(owning: try ListeningSocket(address).release()))
    }

    private func accept(on socket: FileDescriptor) throws {
        let thread = try WorkerThread(name: name) { [name, serve, state] in
            while true {
                let accepted = Glibc.accept(socket.rawValue, nil, nil)
                if accepted < 0 {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    return
                }
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                let connection = FileDescriptor(owning: accepted)
                Self.sendAtOnce(connection)
                let number = state.withLock { state in
                    state.accepted += 1
                    state.open[state.accepted] = connection
                    return state.accepted
                }
                state.notifyAll()
                _ = try? WorkerThread(name: name) {
                    serve(connection, number)
                    _ = state.withLock { $0.open.removeValue(forKey: number) }
                    state.notifyAll()
                }
            }
        }
        state.withLock { $0.listener = (socket, thread) }
    }

    /// A connection to a port of the loopback interface.
    /// - Parameters:
    ///   - receiveBuffer: the value of SO_RCVBUF.
    ///   - source: the last number of the client's address in 127.0.0.0/8.
    package static func connect(to port: UInt16, receiveBuffer: Int32? = nil, source: UInt8 = 1) throws
        -> FileDescriptor
    {
        let connection = FileDescriptor(
            owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0))
        if var size = receiveBuffer {
            setsockopt(connection.rawValue, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        func use(_ host: UInt8, _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) throws {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(host)).bigEndian
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call(connection.rawValue, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard result == 0 else { throw Errno.current }
        }
        if source != 1 { try use(source, 0, Glibc.bind) }
        try use(1, port, Glibc.connect)
        sendAtOnce(connection)
        return connection
    }

    /// Sends RST now: the peer loses what it has not read. The descriptor stays open.
    package static func reset(_ connection: FileDescriptor) {
        // connect(2) to AF_UNSPEC dissolves a TCP connection, with RST if it is established.
        var nowhere = sockaddr(sa_family: sa_family_t(AF_UNSPEC), sa_data: sockaddr().sa_data)
        _ = Glibc.connect(connection.rawValue, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Waits until the peer has closed its side, without reading anything.
    package static func awaitEnd(of connection: FileDescriptor, within limit: Duration) {
        // 0x2000 is POLLRDHUP, which Glibc does not export to Swift.
        var entry = pollfd(fd: connection.rawValue, events: 0x2000, revents: 0)
        poll(&entry, 1, Int32(clamping: limit.nanoseconds / 1_000_000))
    }

    private static func sendAtOnce(_ connection: FileDescriptor) {
        var one: Int32 = 1
        setsockopt(connection.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }
}
