/// How an exchange ended.
struct TransportResult: Sendable {
    /// The final response's head, also where the connection was lost later.
    var head: TransportHead?
    /// What was kept of the response's content (``BodyDisposition/collect(limit:within:)``).
    var content: [UInt8]
    /// Bytes of the request's content handed to the kernel: the peer may have got fewer.
    var sent: Int64
    /// Bytes of the response's content.
    var received: Int64
    /// Whether the request's content was handed over to its end: all of its `count`, or all that the source has.
    var sourceEnded: Bool
    /// nil: the response is complete. An early response is, whatever happened to the request (RFC 9112 §9.5).
    var failure: TransportFailure?
    /// Whether the response's content was received to the end that its framing tells.
    var isContentWhole: Bool
}
