import PostgreSQL
import SystemCalls
import UploadStorage

/// The attempts to resolve the outcomes of batches. One thread at a time makes an attempt; all threads that wait for it share
/// its outcome, because each attempt can last until its time limit.
struct OutcomeResolution {
    /// The numbers of attempts that have begun, and that have ended.
    private var begun = 0
    private var ended = 0
    /// The failure of the last attempt that has ended.
    private var failure: DatabaseError?

    /// - Returns: the number of the running attempt; `nil` if the caller has to make the next one.
    mutating func begin() -> Int? {
        if begun > ended { return begun }
        begun += 1
        return nil
    }

    mutating func end(_ failure: DatabaseError?) {
        ended = begun
        self.failure = failure
    }

    /// - Returns: `nil` while the attempt is running; `.some(nil)` if the last attempt that has ended was successful;
    ///   otherwise its error.
    func outcome(of attempt: Int) -> DatabaseError?? { ended < attempt ? nil : .some(failure) }
}

extension ClusterNode {
    /// Makes changes in one transaction of the current session, after the outcomes of all earlier batches are known.
    ///
    /// If the outcome of this batch becomes unknown, it is resolved before anything else is read or changed. After that
    /// the transaction either was committed, or can no longer have an effect, even if the database receives it later.
    /// - Parameter statements: returns the statements for the number of a session. It is called again for another attempt.
    /// - Returns: the number of the session, and the rows of each statement.
    func change(
        _ statements: (Int64) -> [DatabaseStatement]
    ) throws(DatabaseError) -> (session: Int64, rows: [DatabaseRows]) {
        while true {
            let (number, batch) = try resolvedSession()
            let begin = DatabaseStatement(ClusterSQL.beginBatch, [.integer(number), .integer(batch)])
            do throws(DatabaseError) {
                return (number, Array(try database.transaction([begin] + statements(number)).dropFirst()))
            } catch {
                if error.sqlState == ClusterSQL.CatalogError.batchEnded {
                    // The database accepts only later batches. If another thread has resolved the outcomes, the session
                    // already has the new number. Otherwise the number is unknown, and the outcomes are resolved again.
                    session.withLock { session in
                        if session.number == number && session.batch == batch {
                            session.outcomeBecameUnknown(in: number)
                        }
                    }
                    continue
                }
                if error.sqlState == ClusterSQL.CatalogError.sessionEnded { sessionWasRejected(number) }
                if error.isPossiblyCommitted { session.withLock { $0.outcomeBecameUnknown(in: number) } }
                throw error
            }
        }
    }

    /// The session and the number of its batches, after the outcomes of all earlier batches are known.
    /// - Parameter deadline: monotonic nanoseconds.
    func resolvedSession(until deadline: Int64 = .max) throws(DatabaseError) -> (number: Int64, batch: Int64) {
        while true {
            let (number, batch, isResolved) = session.withLock { ($0.number, $0.batch, $0.unresolved.isEmpty) }
            guard let number else { throw Self.noSession }
            if isResolved { return (number, batch) }
            try resolve(until: deadline)
        }
    }

    /// The time for which attempts to resolve outcomes are repeated while a client waits for its response: the same
    /// time as for a request to the object storage.
    private static let resolutionTime = Duration.seconds(10)
    private static let resolutionPause: Int64 = 200_000_000

    /// Waits until the outcomes of all batches are known, and then runs `body`. If the database is unavailable, both are
    /// repeated.
    /// - Throws: the error of the last attempt.
    func awaitOutcomes<Result>(then body: () throws(DatabaseError) -> Result) throws(DatabaseError) -> Result {
        let deadline = SystemClock.deadline(in: Self.resolutionTime)
        while true {
            do throws(DatabaseError) {
                _ = try resolvedSession(until: deadline)
                return try body()
            } catch {
                let next = SystemClock.monotonicNanoseconds() + Self.resolutionPause
                guard case .unavailable = error, next < deadline, !waitForClosing(until: next) else { throw error }
            }
        }
    }

    /// Resolves the outcomes of all batches, or waits until another thread has tried to resolve them.
    private func resolve(until deadline: Int64) throws(DatabaseError) {
        guard let awaited = outcomeResolution.withLock({ $0.begin() }) else {
            var failure: DatabaseError?
            do throws(DatabaseError) {
                for number in session.withLock({ $0.unresolved }) { try resolveOutcomes(of: number, until: deadline) }
            } catch { failure = error }
            outcomeResolution.withLock { [failure] in $0.end(failure) }
            outcomeResolution.notifyAll()
            if let failure { throw failure }
            return
        }
        let outcome = outcomeResolution.wait(until: deadline) { $0.outcome(of: awaited) }
        guard let outcome else {
            throw .unavailable("the outcome of a transaction is unknown", isPossiblyCommitted: false)
        }
        if let outcome { throw outcome }
    }

    private func resolveOutcomes(of number: Int64, until deadline: Int64) throws(DatabaseError) {
        do throws(DatabaseError) {
            let statement = DatabaseStatement(ClusterSQL.resolveBatches, [.integer(number)])
            let rows = try database.run(statement, until: deadline)
            session.withLock { $0.resolved(number, nextBatch: rows.integer(0, 0)) }
        } catch {
            guard error.sqlState == ClusterSQL.CatalogError.sessionEnded else { throw error }
            // No batch of an ended session is running, and none is accepted.
            session.withLock { $0.resolved(number, nextBatch: nil) }
            sessionWasRejected(number)
        }
    }

    /// Runs a statement after the outcomes of all earlier batches are known, so that the rows contain their effects.
    func read(_ sql: String, _ parameters: [DatabaseValue] = []) throws(StoreError) -> DatabaseRows {
        try translating { () throws(DatabaseError) in try read([DatabaseStatement(sql, parameters)])[0] }
    }

    /// Runs statements that change nothing in one transaction.
    func read(_ statements: [DatabaseStatement]) throws(DatabaseError) -> [DatabaseRows] {
        _ = try resolvedSession()
        return try database.transaction(statements)
    }

    func translating<Result>(_ body: () throws(DatabaseError) -> Result) throws(StoreError) -> Result {
        do throws(DatabaseError) { return try body() } catch { throw StoreError(error) }
    }
}
