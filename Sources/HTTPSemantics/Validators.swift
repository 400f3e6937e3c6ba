/// The validators of a selected representation (RFC 9110 §8.8).
package struct Validators: Sendable, Hashable {
    package var entityTag: EntityTag?
    package var lastModified: HTTPDate?
    /// The Date of the response. A modification date is strong when it lies at least one second before it (RFC 9110
    /// §8.8.2.2).
    package var date: HTTPDate

    package init(entityTag: EntityTag? = nil, lastModified: HTTPDate? = nil, date: HTTPDate) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.date = date
    }

    /// The modification date if it is a strong validator, else nil.
    var strongLastModified: HTTPDate? {
        lastModified.flatMap { $0 < date ? $0 : nil }
    }
}
