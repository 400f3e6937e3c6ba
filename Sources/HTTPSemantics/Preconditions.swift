/// The conditional fields of a request (RFC 9110 section 13), evaluated in the order of section 13.2.2.
///
/// Malformed values have the safe result: a malformed If-Match fails, so nothing is changed without a match. A
/// malformed If-None-Match matches nothing for GET and HEAD, which yields the full response, and fails for every other
/// method, so that nothing is overwritten. A malformed If-Range does not apply, which also yields the full response.
/// Dates that are malformed or given in several lines are ignored (RFC 9110 section 13.1.3 and section 13.1.4).
package struct Preconditions: Sendable, Hashable {
    package enum Outcome: Sendable, Hashable {
        /// Perform the method; for GET, evaluate ``Preconditions/rangeApplies(current:)`` next.
        case proceed
        /// The response is 304. For GET and HEAD only.
        case notModified
        /// The response is 412.
        case failed
    }

    private enum TagField: Sendable, Hashable {
        case absent
        case malformed
        case condition(EntityTagCondition)
    }

    private enum RangeField: Sendable, Hashable {
        case absent
        case malformed
        case entityTag(EntityTag)
        case date(HTTPDate)
    }

    private let ifMatch: TagField
    private let ifNoneMatch: TagField
    private let ifUnmodifiedSince: HTTPDate?
    private let ifModifiedSince: HTTPDate?
    private let ifRange: RangeField

    /// Whether the request carries none of If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range.
    package let isEmpty: Bool

    /// Parses the conditional fields of a request.
    ///
    /// - Parameter now: the current time, to interpret two-digit years.
    package init(fields: Fields, now: HTTPDate) {
        ifMatch = Preconditions.tagField(fields.values("If-Match"))
        ifNoneMatch = Preconditions.tagField(fields.values("If-None-Match"))
        ifUnmodifiedSince = Preconditions.date(fields.values("If-Unmodified-Since"), now: now)
        ifModifiedSince = Preconditions.date(fields.values("If-Modified-Since"), now: now)
        ifRange = Preconditions.rangeField(fields.values("If-Range"), now: now)
        isEmpty = !["If-Match", "If-None-Match", "If-Unmodified-Since", "If-Modified-Since", "If-Range"]
            .contains { fields.contains($0) }
    }

    /// Evaluates all conditions except If-Range.
    ///
    /// Call it only if the response would otherwise be 2xx or 412 (RFC 9110 section 13.2.1). CONNECT, OPTIONS and TRACE
    /// select no representation, so the result is always `proceed`.
    ///
    /// - Parameter current: the validators of the selected representation; `nil` if there is none.
    package func evaluate(method: Method, current: Validators?) -> Outcome {
        if method == .connect || method == .options || method == .trace { return .proceed }
        switch ifMatch {
        case .malformed:
            return .failed
        case .condition(let condition):
            guard let current,
                condition.isMatched(by: current.entityTag, comparing: { $0.strongMatches($1) })
            else { return .failed }
        case .absent:
            if let ifUnmodifiedSince, let lastModified = current?.lastModified, lastModified > ifUnmodifiedSince {
                return .failed
            }
        }
        let isRetrieval = method == .get || method == .head
        switch ifNoneMatch {
        case .malformed:
            return isRetrieval ? .proceed : .failed
        case .condition(let condition):
            guard let current, condition.isMatched(by: current.entityTag, comparing: { $0.weakMatches($1) }) else {
                return .proceed
            }
            return isRetrieval ? .notModified : .failed
        case .absent:
            guard isRetrieval, let ifModifiedSince, let lastModified = current?.lastModified else { return .proceed }
            return lastModified <= ifModifiedSince ? .notModified : .proceed
        }
    }

    /// Whether a Range field, if there is one, may be answered with 206: If-Range is absent or its condition is true
    /// (RFC 9110 section 13.1.5). Without a Range field the result has no meaning.
    ///
    /// A tag is compared strongly. A date must equal the modification date, which must be a strong validator.
    package func rangeApplies(current: Validators) -> Bool {
        switch ifRange {
        case .absent: true
        case .malformed: false
        case .entityTag(let tag): current.entityTag?.strongMatches(tag) ?? false
        case .date(let date): current.strongLastModified == date
        }
    }

    private static func tagField(_ lines: [String]) -> TagField {
        guard !lines.isEmpty else { return .absent }
        return EntityTagCondition(fieldLines: lines).map(TagField.condition) ?? .malformed
    }

    private static func date(_ lines: [String], now: HTTPDate) -> HTTPDate? {
        lines.count == 1 ? HTTPDate(parsing: lines[0], relativeTo: now) : nil
    }

    private static func rangeField(_ lines: [String], now: HTTPDate) -> RangeField {
        guard !lines.isEmpty else { return .absent }
        guard lines.count == 1 else { return .malformed }
        return EntityTag(parsing: lines[0]).map(RangeField.entityTag)
            ?? HTTPDate(parsing: lines[0], relativeTo: now).map(RangeField.date) ?? .malformed
    }
}

/// The value of If-Match or If-None-Match (RFC 9110 section 13.1.1, section 13.1.2).
package enum EntityTagCondition: Sendable, Hashable {
    /// `*`: any current representation.
    case any
    /// One or more entity tags, in order.
    case tags([EntityTag])

    /// Parses the values of all lines of the field. Returns `nil` if there is none, if an element is not an entity tag,
    /// if "*" is not alone, or if the list is empty. Empty elements are skipped.
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

/// The validators of a selected representation (RFC 9110 section 8.8).
package struct Validators: Sendable, Hashable {
    package var entityTag: EntityTag?
    package var lastModified: HTTPDate?
    /// The Date of the response. A modification date is a strong validator when it is at least one second earlier than
    /// the Date (RFC 9110 section 8.8.2.2).
    package var date: HTTPDate

    package init(entityTag: EntityTag? = nil, lastModified: HTTPDate? = nil, date: HTTPDate) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
    }

    /// The modification date if it is a strong validator, else `nil`.
    var strongLastModified: HTTPDate? {
        lastModified.flatMap { $0 < date ? $0 : nil }
    }
}
