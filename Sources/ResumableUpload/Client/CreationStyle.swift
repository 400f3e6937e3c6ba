/// How an upload starts (draft section 4.2).
public enum CreationStyle: Sendable, Hashable, CaseIterable {
    /// The request that creates the upload has the complete content. The client sends it after the server has announced
    /// the upload resource, or after a timeout.
    case optimistic
    /// An empty request creates the upload; the content follows in appends.
    case careful
    /// Optimistic up to ``maxSizeWithoutDiscovery`` bytes and for content of unknown length. For more bytes, the limits
    /// of the target are requested first (draft section 4.1.4): careful if it announces resumable uploads of this
    /// version, otherwise optimistic. That costs two round trips, and makes interruptions cheap even behind proxies
    /// that do not forward 104.
    case automatic
    /// One ordinary request, which cannot be resumed.
    case plain

    /// In bytes.
    package static let maxSizeWithoutDiscovery: Int64 = 4 << 20
}
