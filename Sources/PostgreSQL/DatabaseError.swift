/// The error of an operation on a database.
package enum DatabaseError: Error, Sendable, Hashable {
    /// The database cannot be reached, the connection was lost, the server stops, or the time ran out.
    ///
    /// - `isPossiblyCommitted`: whether the commit was sent and its result is unknown. If this is false, nothing has
    ///   changed.
    case unavailable(String, isPossiblyCommitted: Bool)
    /// The server has rejected a statement, and nothing has changed.
    ///
    /// - `sqlState`: the code of the error (postgresql.org/docs/current/errcodes-appendix.html).
    case failed(sqlState: String, message: String)
}

extension DatabaseError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unavailable(let text, isPossiblyCommitted: false): "the database is unavailable: \(text)"
        case .unavailable(let text, isPossiblyCommitted: true):
            "the database is unavailable, and the transaction may have been committed: \(text)"
        case .failed(let sqlState, let message): "\(message) (SQLSTATE \(sqlState))"
        }
    }
}

extension DatabaseError {
    /// Whether the same transaction can succeed if it is repeated: the server has rolled it back because of another
    /// transaction (`serialization_failure`, `deadlock_detected`).
    var isConflict: Bool {
        if case .failed(let sqlState, _) = self { return sqlState == "40001" || sqlState == "40P01" }
        return false
    }
}
