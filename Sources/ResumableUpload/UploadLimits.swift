import HTTPSemantics
import StructuredFields

/// The limits of an upload as `Upload-Limit` announces them (draft section 4.1.4).
///
/// Sizes are bytes of the representation, ages are seconds. `nil` means that there is no such limit.
public struct UploadLimits: Sendable, Hashable, Codable {
    /// The largest Integer of RFC 9651, and so the largest offset, length or limit.
    public static let largestInteger: Int64 = 999_999_999_999_999

    /// The maximum size of the representation in bytes (`max-size`).
    public var maxSize: Int64?
    /// The minimum size of the representation in bytes (`min-size`).
    public var minSize: Int64?
    /// The maximum content of one request in bytes (`max-append-size`).
    public var maxAppendSize: Int64?
    /// The minimum content in bytes of a request that does not complete the upload (`min-append-size`).
    public var minAppendSize: Int64?
    /// The lifetime of an upload in seconds: the complete lifetime in the limits with which an upload is created, the
    /// remaining lifetime in the limits that a response announces.
    public var maxAge: Int64?

    /// Creates limits; by default there are none.
    public init(
        maxSize: Int64? = nil, minSize: Int64? = nil, maxAppendSize: Int64? = nil, minAppendSize: Int64? = nil,
        maxAge: Int64? = nil
    ) {
        self.maxSize = maxSize
        self.minSize = minSize
        self.maxAppendSize = maxAppendSize
        self.minAppendSize = minAppendSize
        self.maxAge = maxAge
    }

    /// The maximum size of a representation in bytes. Without a configured maximum it is the largest value that the
    /// fields can express.
    public var effectiveMaxSize: Int64 { min(maxSize ?? Self.largestInteger, Self.largestInteger) }

    /// The same limits with a remaining lifetime of `seconds`; negative values count as zero.
    public func remaining(_ seconds: Int64?) -> UploadLimits {
        var limits = self
        limits.maxAge = seconds.map { max(0, $0) }
        return limits
    }

    /// The limits with which an upload satisfies both these limits and `other`.
    package func restricted(by other: UploadLimits?) -> UploadLimits {
        guard let other else { return self }
        func minimum(_ path: KeyPath<UploadLimits, Int64?>) -> Int64? {
            [self[keyPath: path], other[keyPath: path]].compactMap { $0 }.min()
        }
        func maximum(_ path: KeyPath<UploadLimits, Int64?>) -> Int64? {
            [self[keyPath: path], other[keyPath: path]].compactMap { $0 }.max()
        }
        return UploadLimits(
            maxSize: minimum(\.maxSize), minSize: maximum(\.minSize), maxAppendSize: minimum(\.maxAppendSize),
            minAppendSize: maximum(\.minAppendSize), maxAge: minimum(\.maxAge))
    }

    /// The value of `Upload-Limit`, a Dictionary of Integers; never empty: without limits it is `min-size=0`.
    package func fieldValue(for dialect: Dialect) -> String {
        var text = ""
        func add(_ key: String, _ value: Int64?) {
            guard let value else { return }
            if !text.isEmpty { text += ", " }
            text += key
            text += "="
            text += String(min(max(value, 0), Self.largestInteger))
        }
        add("max-size", maxSize)
        add("min-size", minSize)
        add("max-append-size", maxAppendSize)
        add("min-append-size", minAppendSize)
        if dialect.sendsExpiresKey { add("expires", maxAge) }
        add("max-age", maxAge)
        if text.isEmpty { add("min-size", 0) }
        return text
    }
}

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
