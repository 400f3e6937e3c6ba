/// What all rows of a catalog add up to.
package struct CatalogTotals: Sendable, Hashable {
    /// By principal.
    package var usage: [String: Usage] = [:]
    /// Uploads in phase complete and in phase invalid.
    package var complete = 0
    package var invalid = 0

    package init() {}
}
