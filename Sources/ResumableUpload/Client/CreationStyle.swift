/// How an upload is begun (draft section 4.2).
public enum CreationStyle: Sendable, Hashable, CaseIterable {
    /// The whole content goes with the request that creates the upload, once the server has told the upload resource
    /// or the client is tired of waiting for that.
    case optimistic
    /// An empty request creates the upload; the content follows in appends.
    case careful
    /// Optimistic up to ``maxSizeWithoutDiscovery`` bytes and for content of unknown length. For more the target is asked for its
    /// limits first (draft section 4.1.4): careful where it tells that it takes resumable uploads of this version,
    /// optimistic otherwise. That costs two round trips, and makes a cut cheap also behind proxies that keep 104 to
    /// themselves.
    case automatic
    /// One ordinary request, of which nothing can be resumed.
    case plain

    /// In bytes.
    package static let maxSizeWithoutDiscovery: Int64 = 4 << 20
}
