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
