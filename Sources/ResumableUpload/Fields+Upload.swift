import HTTPSemantics
import StructuredFields

extension Fields {
    /// The value of a field that is an Item with a non-negative Integer; `nil` if it is absent or invalid.
    ///
    /// A field that does not parse, has another type or is negative counts as absent (draft section 4.1,
    /// RFC 9651 section 4.2); parameters are ignored.
    package func uploadInteger(_ name: String) -> Int64? {
        let lines = values(name)
        guard !lines.isEmpty, let item = try? Item(parsing: lines), case .integer(let value) = item.value, value >= 0
        else { return nil }
        return Int64(value)
    }

    /// The value of a field that is an Item with a Boolean; `nil` if it is absent or invalid.
    package func uploadBoolean(_ name: String) -> Bool? {
        let lines = values(name)
        guard !lines.isEmpty, let item = try? Item(parsing: lines), case .boolean(let value) = item.value
        else { return nil }
        return value
    }
}
