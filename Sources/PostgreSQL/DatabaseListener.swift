import SystemCalls

/// Receives the notifications of a channel (postgresql.org/docs/current/sql-notify.html) until it is closed. After the
/// connection is lost, it connects again.
package final class DatabaseListener: Sendable {
    private let thread: WorkerThread
    /// Wakes the thread when it is closed.
    private let signal: ConnectedSocket
    private let isClosed: Monitor<Bool>

    init(
        connect: @escaping @Sendable () throws(DatabaseError) -> DatabaseConnection,
        onConnect: @escaping @Sendable () -> Void, body: @escaping @Sendable (String) -> Void
    ) throws(Errno) {
        let (signal, descriptor) = try ConnectedSocket.pair()
        let end = FileDescriptor(owning: descriptor)
        let isClosed = Monitor(false)
        self.signal = signal
        self.isClosed = isClosed
        thread = try WorkerThread(name: "database-events") {
            var pause: Int64 = 50_000_000
            while !isClosed.withLock({ $0 }) {
                do throws(DatabaseError) {
                    let connection = try connect()
                    pause = 50_000_000
                    onConnect()
                    while !isClosed.withLock({ $0 }) {
                        for payload in try connection.notifications(orInputOf: end.rawValue) { body(payload) }
                    }
                } catch {
                    // The next attempt follows.
                    let next = SystemClock.monotonicNanoseconds() + Int64.random(in: pause / 2...pause)
                    pause = min(2 * pause, 2_000_000_000)
                    _ = isClosed.wait(until: next) { $0 ? () : nil }
                }
            }
        }
    }

    deinit { stop() }

    /// Ends the notifications. When it returns, no function is running, unless one of them calls it.
    package func close() {
        stop()
        thread.join()
    }

    private func stop() {
        isClosed.withLock { $0 = true }
        isClosed.notifyAll()
        signal.endOutput()
    }
}
