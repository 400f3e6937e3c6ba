import HTTPSemantics
import StructuredFields

extension UploadLimits {
    /// The limits that a response announces; `nil` if `Upload-Limit` is absent or malformed.
    ///
    /// Unknown keys are ignored; if the value of a known key is negative or not an Integer, the entire field is ignored
    /// (draft section 4.1.4).
    package init?(parsing fields: Fields, dialect: Dialect) {
        let lines = fields.values(UploadFieldName.limit)
        guard !lines.isEmpty, let members = try? OrderedDictionary(parsing: lines) else { return nil }
        self.init()
        var expires: Int64?
        for (key, member) in members {
            let isOldLifetimeKey = dialect.sendsExpiresKey && key == "expires"
            guard isOldLifetimeKey || Self.keys.contains(key) else { continue }
            guard case .item(let item) = member, case .integer(let value) = item.value, value >= 0 else { return nil }
            switch key {
            case "max-size": maxSize = Int64(value)
            case "min-size": minSize = Int64(value)
            case "max-append-size": maxAppendSize = Int64(value)
            case "min-append-size": minAppendSize = Int64(value)
            case "max-age": maxAge = Int64(value)
            default: expires = Int64(value)
            }
        }
        maxAge = maxAge ?? expires
    }

    private static let keys: Set<String> = ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"]
}
