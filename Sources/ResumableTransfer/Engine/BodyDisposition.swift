/// What becomes of the content of a response.
enum BodyDisposition: Sendable {
    /// The first `limit` bytes are kept for ``TransportResult/content``, the rest is received and thrown away.
    case collect(limit: Int)
    case write(any BodySink)
    /// It is not received: the exchange ends as ``TransportFailure/cancelled``, with the head in its result.
    case abort
}
