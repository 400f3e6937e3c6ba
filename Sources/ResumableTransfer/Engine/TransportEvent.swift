/// What happens during an exchange.
enum TransportEvent: Sendable {
    /// An interim response (1xx); any number of them.
    case interim(TransportHead)
    /// The final response's head.
    case head(TransportHead)
    /// Bytes of the request's content handed to the kernel so far; at most every 100 ms, and at the end.
    case sent(Int64)
    /// Bytes of the response's content so far; at most every 100 ms, again every 250 ms while no more come, and at the end.
    case received(Int64)
}
