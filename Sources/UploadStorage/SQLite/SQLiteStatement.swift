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
        // SQLite reads all texts and blobs from one buffer, instead of copying each of them. A null pointer would bind
        // NULL, so the buffer is never empty.
        var buffer: [UInt8] = [0]
        buffer.reserveCapacity(parameters.reduce(1) { $0 + $1.count })
        for parameter in parameters { parameter.append(to: &buffer) }
        try buffer.withUnsafeBufferPointer { (buffer) throws(SQLiteFailure) in
            defer {
                sqlite3_reset(handle)
                sqlite3_clear_bindings(handle)
            }
            var start = 1
            for (index, parameter) in parameters.enumerated() {
                let bytes = buffer.baseAddress.map { UnsafeRawPointer($0 + start) }
                let result = bind(parameter, bytes, at: Int32(index + 1))
                if result != SQLITE_OK { throw connection.failure(result) }
                start += parameter.count
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
    }

    /// - Parameter bytes: the bytes of a text or blob, which stay valid until the bindings are cleared.
    private func bind(_ value: SQLiteValue, _ bytes: UnsafeRawPointer?, at index: Int32) -> Int32 {
        let count = Int32(value.count)
        return switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let value): sqlite3_bind_int64(handle, index, value)
        case .text: sqlite3_bind_text(handle, index, bytes?.assumingMemoryBound(to: CChar.self), count, nil)
        case .blob: sqlite3_bind_blob(handle, index, bytes, count, nil)
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

    /// The number of bytes of a text or blob, otherwise 0.
    fileprivate var count: Int {
        switch self {
        case .null, .integer: 0
        case .text(let value): value.utf8.count
        case .blob(let value): value.count
        }
    }

    fileprivate func append(to buffer: inout [UInt8]) {
        switch self {
        case .null, .integer: break
        case .text(let value): buffer += value.utf8
        case .blob(let value): buffer += value
        }
    }

    var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    var text: String? { if case .text(let value) = self { value } else { nil } }
    var blob: [UInt8]? { if case .blob(let value) = self { value } else { nil } }
}
