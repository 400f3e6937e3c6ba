/// Reports the progress of an exchange: at most every 100 ms while bytes move, and every 250 ms while none of a response's content
/// that has begun arrives. So what follows from the time alone is done also on a connection that has stalled.
struct ProgressReports {
    private static let interval: Int64 = 100_000_000
    private static let repetition: Int64 = 250_000_000

    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var lastReport: Int64 = 0

    /// The time of the next report; nil: there is nothing to report yet.
    private(set) var nextTime: Int64?

    /// Reports what has changed, or the same again, if it is time.
    mutating func report(sent: Int64?, received: Int64, now: Int64, to exchange: TransportExchange) {
        let hasChanged = sent ?? 0 != self.sent || received != self.received
        guard hasChanged || received > 0 else {
            nextTime = nil
            return
        }
        let interval = hasChanged ? Self.interval : Self.repetition
        guard now - lastReport >= interval else {
            nextTime = lastReport + interval
            return
        }
        lastReport = now
        nextTime = received > 0 ? now + Self.repetition : nil
        if let sent, sent != self.sent { exchange.report(.sent(sent)) }
        if received > 0 { exchange.report(.received(received)) }
        self.sent = sent ?? 0
        self.received = received
    }
}
