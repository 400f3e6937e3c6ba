import SystemCalls

/// Receives the notifications of a channel (postgresql.org/docs/current/sql-notify.html) until it is closed. After the
/// connection is lost, it connects again.
package final class DatabaseListener: Sendable {
    private let thread: WorkerThread
    /// Wakes the thread when the listener is closed or has to connect again.
    private let signal: ConnectedSocket
    private let state: Monitor<State>

    private struct State {
        var isClosed = false
        var shouldReconnect = false
    }

    init(
        connect: @escaping @Sendable () throws(DatabaseError) -> DatabaseConnection,
        onConnect: @escaping @Sendable () -> Void, body: @escaping @Sendable (String) -> Void
    ) throws(Errno) {
        let (signal, descriptor) = try ConnectedSocket.pair()
        let end = ConnectedSocket(owning: FileDescriptor(owning: descriptor))
        let state = Monitor(State())
        self.signal = signal
        self.state = state
        thread = try WorkerThread(name: "database-events") {
            var pause: Int64 = 50_000_000
            while !state.withLock({ $0.isClosed }) {
                do throws(DatabaseError) {
                    let connection = try connect()
                    pause = 50_000_000
                    onConnect()
                    while !state.withLock({ $0.isClosed }) {
                        for payload in try connection.notifications(orInputOf: end.rawValue) { body(payload) }
                        if Self.removeRequest(state, end) { break }
                    }
                } catch {
                    // The next attempt follows.
                    let next = SystemClock.monotonicNanoseconds() + Int64.random(in: pause / 2...pause)
                    pause = min(2 * pause, 2_000_000_000)
                    _ = state.wait(until: next) { $0.isClosed ? () : nil }
                }
            }
        }
    }

    /// Returns whether ``reconnect()`` was called.
    private static func removeRequest(_ state: Monitor<State>, _ end: ConnectedSocket) -> Bool {
        state.withLock { state in
            guard state.shouldReconnect, !state.isClosed else { return false }
            state.shouldReconnect = false
            // ``reconnect()`` has sent this byte before, so this call does not wait.
            var byte: UInt8 = 0
            _ = try? withUnsafeMutableBytes(of: &byte) { try end.receive(into: $0, until: 0) }
            return true
        }
    }

    deinit { stop() }

    /// Ends the notifications. When this function returns, no closure of the listener is running, unless the closure
    /// itself made the call.
    package func close() {
        stop()
        thread.join()
    }

    /// Ends the connection and makes a new one, because the connection may be lost although it seems to be open.
    package func reconnect() {
        state.withLock { state in
            if state.shouldReconnect || state.isClosed { return }
            state.shouldReconnect = true
            _ = try? signal.send([0], until: 0)
        }
    }

    private func stop() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
        signal.endOutput()
    }
}
