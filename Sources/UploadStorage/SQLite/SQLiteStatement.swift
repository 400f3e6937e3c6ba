import CSQLite

/// One prepared statement (sqlite.org/c3ref/stmt.html), used by the thread that uses its connection.
final class SQLiteStatement {
    private let handle: OpaquePointer

    init(owning handle: OpaquePointer) { self.handle = handle }

    deinit { sqlite3_finalize(handle) }

    /// Binds the parameters in order, runs the statement to its end and calls `body` with each row.
    func run(_ parameters: [SQLiteValue], on connection: SQLiteConnection, _ body: ([SQLiteValue]) -> Void)
        throws(SQLiteFailure)
    {
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        for (index, parameter) in parameters.enumerated() {
            let result = bind(parameter, at: Int32(index + 1))
            if result != SQLITE_OK { throw connection.failure(result) }
        }
        while true {
            let result = sqlite3_step(handle)
            switch result {
            case SQLITE_ROW: body((0..<sqlite3_column_count(handle)).map(column))
            case SQLITE_DONE: return
            default: throw connection.failure(result)
            }
        }
    }

    private func bind(_ value: SQLiteValue, at index: Int32) -> Int32 {
        switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let value): sqlite3_bind_int64(handle, index, value)
        case .text(var value):
            value.withUTF8 { bytes in
                onward_sqlite3_bind_text(handle, index, bytes.baseAddress, Int32(bytes.count))
            }
        case .blob(let value):
            value.withUnsafeBytes { onward_sqlite3_bind_blob(handle, index, $0.baseAddress, Int32($0.count)) }
        }
    }

    private func column(_ index: Int32) -> SQLiteValue {
        switch sqlite3_column_type(handle, index) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, index))
        case SQLITE_TEXT:
            guard let text = sqlite3_column_text(handle, index) else { return .null }
            let bytes = UnsafeBufferPointer(start: text, count: Int(sqlite3_column_bytes(handle, index)))
            return .text(String(decoding: bytes, as: UTF8.self))
        case SQLITE_BLOB:
            guard let bytes = sqlite3_column_blob(handle, index) else { return .blob([]) }
            return .blob(Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, index)))))
        default: return .null
        }
    }
}

/// A value of a column or a parameter.
enum SQLiteValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    init(_ value: Int64?) { self = value.map { .integer($0) } ?? .null }
    init(_ value: [UInt8]?) { self = value.map { .blob($0) } ?? .null }
    init(_ value: String?) { self = value.map { .text($0) } ?? .null }

    var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    var text: String? { if case .text(let value) = self { value } else { nil } }
    var blob: [UInt8]? { if case .blob(let value) = self { value } else { nil } }
}
