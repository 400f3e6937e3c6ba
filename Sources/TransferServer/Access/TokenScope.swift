/// What a token allows.
public enum TokenScope: String, Sendable, Hashable, CaseIterable {
    /// Downloads and listings.
    case read
    /// Uploads under names that are free.
    case create
    /// Uploads under every name, and deletions.
    case write
}
