/// What becomes of the content of a response.
enum BodyDisposition: Sendable {
    /// Up to `limit` bytes are kept for ``TransportResult/content``. The exchange ends, without a failure, where more follow
    /// or when this time has passed since the head.
    case collect(limit: Int, within: Duration)
    case write(any BodySink)
    /// It is not received: the exchange ends as ``TransportFailure/cancelled``, with the head in its result.
    case abort
}
