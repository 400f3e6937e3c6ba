import CSQLite
import Synchronization
import SystemCalls

/// One connection to a database (sqlite.org/c3ref/sqlite3.html) with its prepared statements. Only one thread may use
/// it at a time.
final class SQLiteConnection {
    private let handle: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]

    /// Opens the database, and creates it unless it must exist.
    /// - Parameter lockTimeout: the time in milliseconds for which a statement waits for a lock of another connection.
    init(
        path: String, isReadOnly: Bool = false, canCreate: Bool = true, lockTimeout: Int32 = 5_000
    ) throws(SQLiteFailure) {
        var handle: OpaquePointer?
        let access =
            isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (canCreate ? SQLITE_OPEN_CREATE : 0)
        let result = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard let handle else {
            throw SQLiteFailure(code: SQLITE_NOMEM, systemError: .outOfMemory, message: "no memory for a connection")
        }
        if result != SQLITE_OK {
            let failure = Self.failure(result, of: handle)
            sqlite3_close_v2(handle)
            throw failure
        }
        self.handle = handle
        sqlite3_busy_timeout(handle, lockTimeout)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(handle)
    }

    /// Runs one statement, prepared once.
    /// - Returns: the number of rows that an INSERT, UPDATE or DELETE has changed; undefined for other statements.
    @discardableResult
    func run(_ sql: String, _ parameters: [SQLiteValue] = []) throws(SQLiteFailure) -> Int {
        try prepared(sql).run(parameters, on: self) { _ in }
        return Int(sqlite3_changes64(handle))
    }

    /// Runs one statement, prepared once, and returns its rows.
    func rows(_ sql: String, _ parameters: [SQLiteValue] = []) throws(SQLiteFailure) -> [[SQLiteValue]] {
        var result: [[SQLiteValue]] = []
        try prepared(sql).run(parameters, on: self) { result.append($0) }
        return result
    }

    /// Interrupts the running statement; any thread may call this while the connection is open.
    func interrupt() { sqlite3_interrupt(handle) }

    /// Runs a script of statements without parameters.
    func execute(_ sql: String) throws(SQLiteFailure) {
        let result = sqlite3_exec(handle, sql, nil, nil, nil)
        if result != SQLITE_OK { throw failure(result) }
    }

    /// Protects the directory for temporary files, which is a setting of the process, not of a connection.
    private static let temporaryDirectory = Mutex(())

    /// Runs `body` while SQLite creates its temporary files in `directory`.
    static func withTemporaryFiles<Result>(
        in directory: String, _ body: () throws(SQLiteFailure) -> Result
    ) throws(SQLiteFailure) -> Result {
        try temporaryDirectory.withLock { (_) throws(SQLiteFailure) in
            onward_sqlite3_set_temporary_directory(directory)
            defer { onward_sqlite3_set_temporary_directory(nil) }
            return try body()
        }
    }

    /// Whether no transaction is open. SQLite ends a transaction after some errors.
    var isInAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    func failure(_ code: Int32) -> SQLiteFailure { Self.failure(code, of: handle) }

    private static func failure(_ code: Int32, of handle: OpaquePointer) -> SQLiteFailure {
        SQLiteFailure(
            code: code, systemError: Errno(rawValue: sqlite3_system_errno(handle)),
            message: String(cString: sqlite3_errmsg(handle)))
    }

    private func prepared(_ sql: String) throws(SQLiteFailure) -> SQLiteStatement {
        if let statement = statements[sql] { return statement }
        var pointer: OpaquePointer?
        let result = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard result == SQLITE_OK, let pointer else { throw failure(result) }
        let statement = SQLiteStatement(owning: pointer)
        statements[sql] = statement
        return statement
    }
}

extension SQLiteConnection {
    /// Rejects a database that is not a catalog, or that a newer version has written.
    ///
    /// - Returns: the number of migration steps that the database has completed.
    func requireCatalog() throws -> Int {
        let application = try rows(CatalogSQL.readApplicationID).first?[0].integer ?? 0
        let tables = try rows(CatalogSQL.countTables).first?[0].integer ?? 0
        let version = try rows(CatalogSQL.readUserVersion).first?[0].integer ?? 0
        guard application == CatalogSQL.applicationID || (application == 0 && tables == 0 && version == 0) else {
            throw StoreError.foreignData("onward.sqlite is the database of another application")
        }
        if version > Int64(CatalogSQL.migrations.count) { throw StoreError.newerSchema(Int(version)) }
        return Int(max(0, version))
    }
}

/// The error of an SQLite call: extended result code and message (sqlite.org/rescode.html).
struct SQLiteFailure: Error, Sendable {
    var code: Int32
    var systemError: Errno
    var message: String

    var primaryCode: Int32 { code & 0xff }

    func storeError(during operation: String) -> StoreError {
        switch primaryCode {
        case SQLITE_FULL: .insufficientSpace(nil)
        // Only ``SQLiteSnapshot/end()`` interrupts a statement.
        case SQLITE_INTERRUPT: .superseded
        case SQLITE_CORRUPT: .damaged(message)
        case SQLITE_NOTADB: .foreignData("onward.sqlite is not an SQLite database")
        default:
            .failure(systemError.rawValue == 0 ? .inputOutput : systemError, during: "\(operation): \(message)")
        }
    }
}

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
