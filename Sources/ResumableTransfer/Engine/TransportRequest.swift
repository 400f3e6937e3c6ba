import HTTPSemantics

/// One request for ``TransportEngine``.
struct TransportRequest: Sendable {
    var method: String
    /// Absolute, of the scheme http or https.
    var uri: String
    /// Sent as they are, but for `Expect`, `Content-Length` and `Transfer-Encoding`: how the content is framed follows
    /// from ``content``, and it waits for nothing but ``gate``.
    var fields: Fields
    /// nil: no content and no Content-Length.
    var content: TransportContent?
    /// Holds the content back until ``TransportExchange/openGate()``, or for this long after the head was sent.
    var gate: Duration?
    /// For how long no byte may move in either direction, once there is a connection, before the exchange ends as
    /// ``TransportFailure/stalled``. Waiting for the response counts, and interim responses do not end it; time at the gate or under the rate limit does not.
    /// A connection that is not there after as long, secured if need be, ends it as ``TransportFailure/connectStalled``.
    var stallTimeout: Duration?
    /// Bytes of content a second, in each direction.
    var rateLimit: Int64?
    var settings: TransportSettings
    /// Called once, on the engine's thread, with the whole final head.
    var receive: @Sendable (TransportHead) -> BodyDisposition
}

extension TransportRequest {
    /// How long a connection may take to be made.
    var connectTimeout: Duration { min(settings.connectTimeout, stallTimeout ?? settings.connectTimeout) }

    /// The content that goes out: none with HEAD.
    var sentContent: TransportContent? { method == "HEAD" ? nil : content }
}
