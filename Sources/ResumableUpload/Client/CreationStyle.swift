/// How an upload is begun (draft section 4.2).
public enum CreationStyle: Sendable, Hashable, CaseIterable {
    /// The whole content goes with the request that creates the upload, once the server has told the upload resource
    /// or the client is tired of waiting for that.
    case optimistic
    /// An empty request creates the upload; the content follows in appends.
    case careful
    /// One ordinary request, of which nothing can be resumed.
    case plain
}
