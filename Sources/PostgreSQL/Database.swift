import SystemCalls

/// A database of PostgreSQL, with a pool of connections. Every call has a time limit, and ends with an error if the
/// server cannot be reached.
///
/// It works through PgBouncer in transaction mode: transactions use no state of the session.
package final class Database: Sendable {
    private struct State {
        /// Connections without a transaction; the one that was used last is the last.
        var idle: [DatabaseConnection] = []
        /// The number of all connections, including those that threads use or open.
        var count = 0
        /// The time at which all calls end, in monotonic nanoseconds.
        var end = Int64.max
        var isClosed = false
    }

    private let uri: DatabaseURI
    private let limit: Int
    private let timeout: Duration
    private let observe: (@Sendable (DatabaseReport) -> Void)?
    private let state = Monitor(State())

    /// Opens no connection: the first call opens one.
    ///
    /// - Parameters:
    ///   - connections: the limit for the connections that are open at the same time.
    ///   - timeout: the limit for the time of each call, including the time to connect.
    ///   - observe: is called after each transaction and each script, on its thread.
    package init(
        _ uri: DatabaseURI, connections: Int = 8, timeout: Duration = .seconds(10),
        observe: (@Sendable (DatabaseReport) -> Void)? = nil
    ) {
        self.uri = uri
        limit = connections
        self.timeout = timeout
        self.observe = observe
    }

    /// Runs statements in one transaction with one round trip. If one of them fails, nothing changes.
    ///
    /// If the server has rolled the transaction back because of another transaction (SQLSTATE 40001 or 40P01), it is
    /// repeated.
    /// - Parameter deadline: the call ends at this time (monotonic nanoseconds) if that is before the timeout.
    /// - Returns: the rows of each statement.
    package func transaction(
        _ statements: [DatabaseStatement], until deadline: Int64 = .max
    ) throws(DatabaseError) -> [DatabaseRows] {
        let last = min(deadline, SystemClock.deadline(in: timeout), state.withLock { $0.end })
        return try observing { (repetitions) throws(DatabaseError) in
            try transaction(statements, until: last, &repetitions)
        }
    }

    /// Calls the observer with the outcome and the duration of `body`, which counts its repetitions.
    private func observing<Result>(
        _ body: (inout Int) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        var report = DatabaseReport()
        let start = SystemClock.monotonicNanoseconds()
        defer {
            report.nanoseconds = SystemClock.monotonicNanoseconds() - start
            observe?(report)
        }
        do throws(DatabaseError) { return try body(&report.repetitions) } catch {
            report.error = error
            throw error
        }
    }

    private func transaction(
        _ statements: [DatabaseStatement], until deadline: Int64, _ repetitions: inout Int
    ) throws(DatabaseError) -> [DatabaseRows] {
        var pause: Int64 = 2_000_000
        while true {
            do throws(DatabaseError) {
                return try withConnection(until: deadline) { (connection) throws(DatabaseError) in
                    try connection.transaction(statements, statementTimeout: timeout * 4 / 5, until: deadline)
                }
            } catch {
                guard error.isConflict, SystemClock.monotonicNanoseconds() + pause < deadline else { throw error }
                SystemClock.pause(nanoseconds: Int64.random(in: pause / 2...pause))
                pause = min(2 * pause, 200_000_000)
                repetitions += 1
            }
        }
    }

    /// Runs one statement, in a transaction of its own.
    package func run(
        _ statement: DatabaseStatement, until deadline: Int64 = .max
    ) throws(DatabaseError) -> DatabaseRows {
        try transaction([statement], until: deadline)[0]
    }

    /// Runs a script of statements without parameters in one transaction, which waits until no other such script runs in
    /// the database. The limit for its time is a minute, or the timeout if that is longer.
    package func runScript(_ sql: String) throws(DatabaseError) {
        let timeout = max(timeout, .seconds(60))
        let deadline = SystemClock.deadline(in: timeout)
        try observing { (_) throws(DatabaseError) in
            try withConnection(until: deadline) { (connection) throws(DatabaseError) in
                // The number of the lock is "onward" in ASCII.
                try connection.script(
                    sql, lock: 0x6f6e_7761_7264, statementTimeout: timeout * 4 / 5, until: deadline)
            }
        }
    }

    /// Calls `body` for each notification of a channel, on a thread and with a connection that nothing else uses. The
    /// connection must not be through PgBouncer in transaction mode.
    ///
    /// - Parameters:
    ///   - onConnect: is called each time the channel is connected, including the first time: earlier notifications
    ///     may have been missed.
    ///   - body: receives the payload of each notification.
    package func listen(
        _ channel: String, onConnect: @escaping @Sendable () -> Void,
        body: @escaping @Sendable (String) -> Void
    ) throws(DatabaseError) -> DatabaseListener {
        let uri = uri
        let timeout = timeout
        let connect = { @Sendable () throws(DatabaseError) -> DatabaseConnection in
            let deadline = SystemClock.deadline(in: timeout)
            let connection = try DatabaseConnection(uri, until: deadline)
            try connection.listen(to: channel, until: deadline)
            return connection
        }
        do throws(Errno) {
            return try DatabaseListener(connect: connect, onConnect: onConnect, body: body)
        } catch {
            throw .unavailable("\(error)", isPossiblyCommitted: false)
        }
    }

    /// Ends all transactions that begin from now on at this time (monotonic nanoseconds), if the server has not responded.
    package func endTransactions(at time: Int64) { state.withLock { $0.end = min($0.end, time) } }

    /// Closes the idle connections, and each other connection when its transaction ends. Later calls fail.
    package func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        state.notifyAll()
        withExtendedLifetime(idle) {}
    }

    // MARK: - The pool

    private enum Slot {
        case connection(DatabaseConnection)
        case new
        case closed
    }

    private func withConnection<Result>(
        until deadline: Int64, _ body: (DatabaseConnection) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        let connection = try connection(until: deadline)
        defer { finish(connection) }
        return try body(connection)
    }

    /// Waits for a connection. An idle connection that the server has closed is replaced.
    private func connection(until deadline: Int64) throws(DatabaseError) -> DatabaseConnection {
        while true {
            guard SystemClock.monotonicNanoseconds() < deadline else {
                throw .unavailable("the time limit has passed", isPossiblyCommitted: false)
            }
            let slot = state.wait(until: deadline) { state -> Slot? in
                if state.isClosed { return .closed }
                if let connection = state.idle.popLast() { return .connection(connection) }
                if state.count >= limit { return nil }
                state.count += 1
                return .new
            }
            switch slot {
            case nil: throw .unavailable("all \(limit) connections are in use", isPossiblyCommitted: false)
            case .closed: throw .unavailable("the database was closed", isPossiblyCommitted: false)
            case .connection(let connection):
                if connection.isReady { return connection }
                finish(nil)
            case .new: return try connect(until: deadline)
            }
        }
    }

    /// A connection that a thread opens.
    private enum Opening {
        case running
        case ended(Result<DatabaseConnection, DatabaseError>)
        /// The deadline passed before the end.
        case timedOut
    }

    /// Opens a connection on a thread of its own, because libpq may need longer than until the deadline. In this case
    /// the connection becomes idle as soon as it is open, so that a later call finds it.
    private func connect(until deadline: Int64) throws(DatabaseError) -> DatabaseConnection {
        let opening = Monitor(Opening.running)
        do throws(Errno) {
            _ = try WorkerThread(name: "database-connect") { [self] in
                let result = Result { () throws(DatabaseError) in try DatabaseConnection(uri, until: deadline) }
                let isLate = opening.withLock { opening in
                    if case .timedOut = opening { return true }
                    opening = .ended(result)
                    return false
                }
                if isLate { finish(try? result.get()) } else { opening.notifyAll() }
            }
        } catch {
            finish(nil)
            throw .unavailable("\(error)", isPossiblyCommitted: false)
        }
        let result = opening.wait(until: deadline) { opening in
            if case .ended(let result) = opening { result } else { nil }
        }
        let last =
            result
            ?? opening.withLock { opening in
                if case .ended(let result) = opening { return result }
                opening = .timedOut
                return nil
            }
        guard let last else { throw .unavailable("the server cannot be reached in time", isPossiblyCommitted: false) }
        do throws(DatabaseError) { return try last.get() } catch {
            finish(nil)
            throw error
        }
    }

    /// Returns a connection to the pool, or reduces the count of connections if it cannot be used again.
    private func finish(_ connection: DatabaseConnection?) {
        let isReady = connection?.isReady ?? false
        state.withLock { state in
            if let connection, isReady, !state.isClosed {
                state.idle.append(connection)
            } else {
                state.count -= 1
            }
        }
        state.notifyOne()
    }
}

/// The outcome of a transaction.
package struct DatabaseReport: Sendable, Hashable {
    /// The error of the transaction; `nil` if it was committed.
    package var error: DatabaseError?
    /// The duration with all repetitions, in nanoseconds.
    package var nanoseconds: Int64 = 0
    /// The number of repetitions because of other transactions.
    package var repetitions = 0

    package init() {}
}
