/// Counts since the catalog was opened: with group commit there are fewer transactions than commits.
package struct CatalogStatistics: Sendable, Hashable {
    package var commits = 0
    package var transactions = 0

    package init() {}
}
