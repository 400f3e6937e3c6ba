/// The scope of a token: a set of operations.
public enum TokenScope: String, Sendable, Hashable, CaseIterable {
    /// Read files and listings.
    case read
    /// Create files with new names.
    case create
    /// Create, replace and delete files.
    case write
}
