/// Tells how far an exchange is, at most every 100 ms.
struct ProgressReports {
    private static let interval: Int64 = 100_000_000

    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var lastReport: Int64 = 0

    /// When there is something to tell; nil: nothing as yet.
    private(set) var nextTime: Int64?

    /// Tells what has changed, if it is time.
    mutating func report(sent: Int64?, received: Int64, now: Int64, to exchange: TransportExchange) {
        guard sent ?? 0 != self.sent || received != self.received else {
            nextTime = nil
            return
        }
        guard now - lastReport >= Self.interval else {
            nextTime = lastReport + Self.interval
            return
        }
        nextTime = nil
        lastReport = now
        if let sent, sent != self.sent { exchange.tell(.sent(sent)) }
        if received != self.received { exchange.tell(.received(received)) }
        self.sent = sent ?? 0
        self.received = received
    }
}
