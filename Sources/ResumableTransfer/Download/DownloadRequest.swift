import HTTPSemantics

/// A request that the state machine of a download wants to have sent.
struct DownloadRequest: Sendable, Hashable {
    enum Resource: Sendable, Hashable {
        /// What the caller asked for.
        case target
        /// Where a redirection led, absolute.
        case other(String)
    }

    var resource: Resource
    /// The offset of the first byte that is asked for; 0: everything, without Range.
    var start: Int64
    /// `Range` and `If-Range`, or nothing.
    var fields: Fields
    /// False: a redirection has led to another origin.
    var carriesCredentials: Bool
}
