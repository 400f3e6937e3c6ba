/// The value of If-Match or If-None-Match (RFC 9110 §13.1.1, §13.1.2).
package enum EntityTagCondition: Sendable, Hashable {
    /// `*`: any current representation.
    case any
    /// One or more entity tags, in order.
    case tags([EntityTag])

    /// Parses the values of all lines of the field. Nil when there is none, when an element is no entity tag, when "*"
    /// is not alone, and when the list is empty. Empty elements are skipped.
    package init?(fieldLines: [String]) {
        let value = fieldLines.joined(separator: ", ").trimmingOptionalWhitespace
        if value == "*" {
            self = .any
            return
        }
        var scanner = FieldValueScanner(value)
        guard let tags = scanner.list(of: { EntityTag(&$0) }), !tags.isEmpty else { return nil }
        self = .tags(tags)
    }

    /// Whether a current representation with the given tag satisfies the list, compared by `matches`.
    func isMatched(by current: EntityTag?, comparing matches: (EntityTag, EntityTag) -> Bool) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): current.map { current in tags.contains { matches($0, current) } } ?? false
        }
    }
}
