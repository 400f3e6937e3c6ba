extension DatabaseConnection {
    /// Runs a transaction in one round trip.
    ///
    /// If it fails with ``DatabaseError/failed(sqlState:message:)``, it has been rolled back. Afterwards ``isReady`` is
    /// whether the connection can be used again.
    ///
    /// - Parameter statementTimeout: the time after which the server ends a statement. It is shorter than the time until
    ///   the deadline, so that usually the server reports the end, and then nothing has changed. It does not limit the
    ///   commit: a commit that waits for a standby server is not reported as complete before the standby has it.
    func transaction(
        _ statements: [DatabaseStatement], statementTimeout: Duration, until deadline: Int64
    ) throws(DatabaseError) -> [DatabaseRows] {
        try beginPipeline()
        let begin = [DatabaseStatement("BEGIN"), Self.limit(statementTimeout), durability]
        for statement in begin + statements {
            guard send(statement) else { throw lost() }
        }
        var results: [DatabaseResult] = []
        var failure: DatabaseError?
        // From here on the server may have received the commit.
        try asUnknown { () throws(DatabaseError) in
            guard send(DatabaseStatement("COMMIT")), synchronizePipeline() else { throw lost() }
            reading: while true {
                guard let result = try nextResult(until: deadline) else { continue }
                switch result.outcome {
                case .completed: results.append(result)
                case .skipped: break
                case .endOfPipeline: break reading
                case .failed(let sqlState, let message): failure = failure ?? self.failure(sqlState, message)
                case .closed(let message): throw .unavailable(message, isPossiblyCommitted: true)
                }
            }
            try endPipeline()
            if isReplicationUncertain {
                throw .unavailable("the wait for a standby server was canceled", isPossiblyCommitted: true)
            }
        }
        if let failure {
            rollBack(until: deadline)
            throw failure
        }
        return try results[begin.count..<begin.count + statements.count].map { (result) throws(DatabaseError) in
            try result.rows()
        }
    }

    /// Runs statements without parameters in one transaction, which waits for other transactions with the same lock.
    func script(_ sql: String, lock: Int64, statementTimeout: Duration, until deadline: Int64) throws(DatabaseError) {
        let parts = [
            "BEGIN", Self.limit(statementTimeout).sql, durability.sql, "SELECT pg_advisory_xact_lock(\(lock))", sql,
        ]
        do throws(DatabaseError) {
            guard send(script: parts.joined(separator: ";\n")) else { throw lost() }
            _ = try results(until: deadline)
        } catch {
            rollBack(until: deadline)
            throw error
        }
        try asUnknown { () throws(DatabaseError) in
            guard send(script: "COMMIT") else { throw lost() }
            _ = try results(until: deadline)
        }
    }

    /// Receives the notifications of a channel from now on.
    func listen(to channel: String, until deadline: Int64) throws(DatabaseError) {
        let name = channel.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
        guard send(script: "LISTEN \"\(name)\"") else { throw lost() }
        _ = try results(until: deadline)
    }

    /// Prepares a new connection.
    ///
    /// If the network fails, the server ends a transaction of this connection, and so releases its locks, about as early
    /// as other nodes may acquire the uploads of this node. By default it would wait for two hours.
    func prepare(until deadline: Int64) throws(DatabaseError) {
        let statement = DatabaseStatement(
            """
            SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '3', false),
            set_config('tcp_keepalives_count', '3', false), current_setting('synchronous_commit')
            """)
        guard send(statement) else { throw lost() }
        isAppliedOnStandby = try results(until: deadline).first?.rows().text(0, 3) == "remote_apply"
    }

    /// Makes the commit of the transaction wait until it is durable on this server and on its synchronous standby servers,
    /// whatever the role, the database or the server has as its default. Through PgBouncer each transaction can get another
    /// connection to the server, so the setting is a part of the transaction.
    private var durability: DatabaseStatement {
        DatabaseStatement("SET LOCAL synchronous_commit = \(isAppliedOnStandby ? "remote_apply" : "on")")
    }

    /// Reads the results of statements that were sent outside a pipeline.
    private func results(until deadline: Int64) throws(DatabaseError) -> [DatabaseResult] {
        var results: [DatabaseResult] = []
        var failure: DatabaseError?
        while let result = try nextResult(until: deadline) {
            switch result.outcome {
            case .completed, .skipped, .endOfPipeline: results.append(result)
            case .failed(let sqlState, let message): failure = failure ?? self.failure(sqlState, message)
            case .closed(let message): throw .unavailable(message, isPossiblyCommitted: false)
            }
        }
        if let failure { throw failure }
        return results
    }

    /// Ends a transaction that has failed. If this fails too, the connection is not ready afterwards.
    private func rollBack(until deadline: Int64) {
        if isInTransaction, send(script: "ROLLBACK") { _ = try? results(until: deadline) }
    }

    private static func limit(_ timeout: Duration) -> DatabaseStatement {
        DatabaseStatement("SET LOCAL statement_timeout = \(max(1, timeout.nanoseconds / 1_000_000))")
    }

    /// The error for a statement that the server has rejected.
    private func failure(_ sqlState: String, _ message: String) -> DatabaseError {
        switch sqlState {
        // query_canceled (by the timeout or an administrator), lock_not_available
        case "57014", "55P03": return .unavailable(message, isPossiblyCommitted: false)
        // read_only_sql_transaction
        case "25006":
            isReadOnly = true
            return .unavailable(message, isPossiblyCommitted: false)
        default: return .failed(sqlState: sqlState, message: message)
        }
    }

    /// Runs the part of a transaction that begins with the commit: if the connection is lost, its result is unknown.
    private func asUnknown(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
        do throws(DatabaseError) {
            try body()
        } catch {
            if case .unavailable(let reason, _) = error { throw .unavailable(reason, isPossiblyCommitted: true) }
            throw error
        }
    }
}
