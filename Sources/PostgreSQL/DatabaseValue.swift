/// A parameter of a statement or a value of a result. Both are sent in the binary format of PostgreSQL.
package enum DatabaseValue: Sendable, Hashable {
    case null
    /// A parameter of type `bigint`; a result of type `bigint`, `integer`, `smallint`, `oid` or `xid8`.
    case integer(Int64)
    /// A parameter of type `text`; a result of type `text`, `varchar`, `char` or `name`.
    case text(String)
    /// `bytea`
    case bytes([UInt8])
    /// `boolean`
    case boolean(Bool)
    /// A parameter of type `bigint[]`; a result of type `bigint[]` or `integer[]`.
    case integers([Int64?])
    /// `text[]`
    case texts([String?])
    /// `bytea[]`
    case byteArrays([[UInt8]?])

    package init(_ value: Int64?) { self = value.map { .integer($0) } ?? .null }
    package init(_ value: [UInt8]?) { self = value.map { .bytes($0) } ?? .null }
    package init(_ value: String?) { self = value.map { .text($0) } ?? .null }
}

/// One statement with values for `$1`, `$2`, …
package struct DatabaseStatement: Sendable, Hashable {
    package var sql: String
    package var parameters: [DatabaseValue]

    package init(_ sql: String, _ parameters: [DatabaseValue] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}

/// The rows that a statement has returned.
package struct DatabaseRows: Sendable, Hashable {
    /// The number of rows.
    package let count: Int
    /// The number of rows that the statement has inserted, updated, deleted or selected.
    package let affected: Int
    private let columns: Int
    private let values: [DatabaseValue]

    init(columns: Int, values: [DatabaseValue], count: Int, affected: Int) {
        self.count = count
        self.affected = affected
        self.columns = columns
        self.values = values
    }

    package subscript(row: Int, column: Int) -> DatabaseValue {
        precondition(column < columns, "the result has \(columns) columns")
        return values[row * columns + column]
    }

    /// The value of a column; `nil` if it is NULL or has another type.
    package func integer(_ row: Int, _ column: Int) -> Int64? {
        if case .integer(let value) = self[row, column] { value } else { nil }
    }

    /// The value of a column; `nil` if it is NULL or has another type.
    package func text(_ row: Int, _ column: Int) -> String? {
        if case .text(let value) = self[row, column] { value } else { nil }
    }

    /// The value of a column; `nil` if it is NULL or has another type.
    package func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
        if case .bytes(let value) = self[row, column] { value } else { nil }
    }

    /// The value of a column; `nil` if it is NULL or has another type.
    package func boolean(_ row: Int, _ column: Int) -> Bool? {
        if case .boolean(let value) = self[row, column] { value } else { nil }
    }
}
