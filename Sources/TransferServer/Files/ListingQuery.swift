import HTTPSemantics

/// The page of a listing that the query of a URL selects.
struct ListingQuery: Sendable, Hashable {
    /// The reason why a query is rejected. The raw value is the stable code of problem documents.
    enum Refusal: String, Error {
        case invalidLimit = "invalid-limit"
        case invalidCursor = "invalid-cursor"
        case invalidPrefix = "invalid-prefix"
    }

    static let maxLimit = 10_000

    /// The maximum number of entries on the page.
    var limit = 1000
    /// The page starts after this name; `nil` for the first page.
    var cursor: String?
    /// Only names that begin with this text are listed.
    var prefix: String

    init(limit: Int = 1000, cursor: String? = nil, prefix: String = "") {
        self.limit = limit
        self.cursor = cursor
        self.prefix = prefix
    }

    /// Parses a query without its question mark. Parameters other than `limit`, `after` and `prefix` are ignored.
    init(parsing query: String?) throws(Refusal) {
        self.init()
        var isLimited = false
        var hasPrefix = false
        for parameter in (query ?? "").split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? String(parts[1]) : ""
            switch parts[0] {
            case "limit":
                guard !isLimited, (1...5).contains(value.utf8.count),
                    value.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let limit = Int(value),
                    (1...Self.maxLimit).contains(limit)
                else { throw .invalidLimit }
                self.limit = limit
                isLimited = true
            case "after":
                guard cursor == nil, let name = Self.name(value) else { throw .invalidCursor }
                cursor = name
            case "prefix":
                // The beginning of a name can be a dot, or two, which are not names themselves.
                guard !hasPrefix,
                    let name = Self.name(value + "_").map({ String(Substring($0.utf8.dropLast())) }) ?? Self.name(value)
                else { throw .invalidPrefix }
                prefix = name
                hasPrefix = true
            default: break
            }
        }
    }

    /// Decodes a valid name. In form encoding a plus sign is a space.
    private static func name(_ value: String) -> String? {
        guard let path = try? PathSegments(decoding: "/" + value.replacing("+", with: "%20")), path.segments.count == 1,
            !path.hasTrailingSlash
        else { return nil }
        return path.segments[0]
    }

    /// The same query with another cursor.
    func serialized(after cursor: String) -> String {
        let prefix = prefix.isEmpty ? "" : "&prefix=" + prefix.utf8.percentEncoded(allowing: \.isUnreserved)
        return "limit=\(limit)\(prefix)&after=" + cursor.utf8.percentEncoded(allowing: \.isUnreserved)
    }
}

extension ProblemDetails {
    init(_ refusal: ListingQuery.Refusal) {
        let detail =
            switch refusal {
            case .invalidLimit:
                "The query parameter 'limit' must be a number from 1 to \(ListingQuery.maxLimit) and occur once."
            case .invalidCursor:
                "The query parameter 'after' must be a percent-encoded name, as in the link to the next page, and occur"
                    + " once."
            case .invalidPrefix:
                "The query parameter 'prefix' must be the percent-encoded beginning of a name, and occur once."
            }
        self.init(status: 400, detail: detail, code: refusal.rawValue)
    }
}
