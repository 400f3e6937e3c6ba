import HTTPSemantics

/// The page of a listing that the query of a URL selects.
struct ListingQuery: Sendable, Hashable {
    /// Why a query is rejected. The raw value is the stable code of problem documents.
    enum Refusal: String, Error {
        case invalidLimit = "invalid-limit"
        case invalidCursor = "invalid-cursor"
    }

    static let maxLimit = 10_000

    /// The maximum number of entries on the page.
    var limit = 1000
    /// The page starts after this name; nil for the first page.
    var cursor: String?

    init(limit: Int = 1000, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    /// Parses a query without its question mark. Parameters other than `limit` and `after` are ignored.
    init(parsing query: String?) throws(Refusal) {
        var isLimited = false
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
                // In form encoding a plus sign is a space. A cursor must be a valid name.
                let path = "/" + value.replacing("+", with: "%20")
                guard cursor == nil, let name = try? PathSegments(decoding: path), name.segments.count == 1,
                    !name.hasTrailingSlash
                else { throw .invalidCursor }
                cursor = name.segments[0]
            default: break
            }
        }
    }

    /// The same query with another cursor.
    func serialized(after cursor: String) -> String {
        "limit=\(limit)&after=" + cursor.utf8.percentEncoded(allowing: \.isUnreserved)
    }
}

extension ProblemDetails {
    init(_ refusal: ListingQuery.Refusal) {
        let detail =
            switch refusal {
            case .invalidLimit:
                "The parameter limit must be a number from 1 to \(ListingQuery.maxLimit) and occur once."
            case .invalidCursor:
                "The parameter after must be a percent-encoded name, as in the link to the next page, and occur once."
            }
        self.init(status: 400, detail: detail, code: refusal.rawValue)
    }
}
