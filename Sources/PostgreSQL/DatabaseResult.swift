import CPostgreSQL

/// The result of one statement (PGresult of libpq).
final class DatabaseResult {
    private let handle: OpaquePointer

    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { PQclear(handle) }

    enum Outcome {
        case completed
        /// An earlier statement of the pipeline has failed.
        case skipped
        /// All results of the pipeline have been read.
        case endOfPipeline
        /// The server has rejected the statement. The connection continues.
        case failed(sqlState: String, message: String)
        /// The server, or a proxy before it, closes the connection.
        case closed(String)
    }

    var outcome: Outcome {
        switch PQresultStatus(handle) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return .completed
        case PGRES_PIPELINE_ABORTED: return .skipped
        case PGRES_PIPELINE_SYNC: return .endOfPipeline
        default:
            let sqlState = field(Int32(ONWARD_PG_SQLSTATE)) ?? ""
            // The details are omitted: they contain values.
            let message =
                (field(Int32(ONWARD_PG_MESSAGE)) ?? String(cString: PQresultErrorMessage(handle))).onOneLine
            let severity = field(Int32(ONWARD_PG_SEVERITY))
            return severity == "FATAL" || severity == "PANIC"
                ? .closed(message) : .failed(sqlState: sqlState, message: message)
        }
    }

    private func field(_ code: Int32) -> String? {
        PQresultErrorField(handle, code).map { String(cString: $0) }
    }

    /// Copies all rows.
    func rows() throws(DatabaseError) -> DatabaseRows {
        let count = PQntuples(handle)
        let columns = PQnfields(handle)
        let types = (0..<columns).map { PQftype(handle, $0) }
        var values: [DatabaseValue] = []
        values.reserveCapacity(Int(count * columns))
        for row in 0..<count {
            for column in 0..<columns {
                if PQgetisnull(handle, row, column) == 1 {
                    values.append(.null)
                    continue
                }
                let bytes = UnsafeRawBufferPointer(
                    start: PQgetvalue(handle, row, column), count: Int(PQgetlength(handle, row, column)))
                guard let value = DatabaseValue(bytes, ofType: types[Int(column)]) else {
                    throw .unavailable(
                        "column \(column + 1) of a result has the unsupported type \(types[Int(column)])",
                        isPossiblyCommitted: true)
                }
                values.append(value)
            }
        }
        return DatabaseRows(
            columns: Int(columns), values: values, count: Int(count),
            affected: Int(String(cString: PQcmdTuples(handle))) ?? 0)
    }
}
