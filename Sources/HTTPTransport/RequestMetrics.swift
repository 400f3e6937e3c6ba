import Foundation
import HTTPSemantics
import SystemCalls

/// The times of one request that has ended, and what was transferred. All durations are measured from ``startedAt``.
public struct RequestMetrics: Sendable, Hashable {
    /// The ``Transfer/id`` of the transfer that sent the request; `nil` for metrics that a program has created.
    public var transferID: UUID?
    /// The method of the request.
    public var method: HTTPSemantics.Method
    /// The URI of the request without its query; the path of an upload resource is hidden.
    public var uri = ""
    /// The status of the final response; `nil` if there was none.
    public var status: Status?
    /// The time at which the request was started.
    public var startedAt: Date
    /// The time until the address of the host (or of the proxy) was found; `nil` if the connection was reused or the
    /// address was not found.
    public var nameLookup: Duration?
    /// The time until the connection was made; `nil` if it was reused or could not be made.
    public var connect: Duration?
    /// The time until the TLS handshake was complete; `nil` without TLS, if the connection was reused, or if the
    /// handshake failed.
    public var secureConnect: Duration?
    /// The time until the first byte of the request was about to be sent; `nil` if nothing was sent.
    public var requestStart: Duration?
    /// The time until the last byte of the request was passed to the kernel; `nil` if the request was not sent
    /// completely.
    public var requestEnd: Duration?
    /// The time until the first byte of the first response, interim or final, was received; `nil` if there was no
    /// response.
    public var responseStart: Duration?
    /// The time until the request ended: after the last byte of the response, or because it was interrupted.
    public var duration: Duration
    /// Whether the request was sent on a connection of an earlier request.
    public var isConnectionReused = false
    /// The version of the protocol, `HTTP/1.1` or `HTTP/2`; `nil` if there was no final response.
    public var httpVersion: String?
    /// Whether the connection was made to a proxy. A proxy whose port is that of the URI is not recognized.
    public var isProxied = false
    /// The IP address of the server or proxy; `nil` if nothing was sent.
    public var remoteAddress: String?
    /// The port of the server or proxy; `nil` if nothing was sent.
    public var remotePort: Int?
    /// The IP address of the client's end of the connection; `nil` if nothing was sent.
    public var localAddress: String?
    /// The port of the client's end of the connection; `nil` if nothing was sent.
    public var localPort: Int?
    /// The number of bytes of the request's head that were sent, including those of a CONNECT request to a proxy.
    public var headSent: Int64 = 0
    /// The number of bytes in the heads of the responses, including interim ones.
    public var headReceived: Int64 = 0
    /// The number of bytes of the request's content that were passed to the kernel.
    public var sent: Int64 = 0
    /// The number of bytes of the response's content that were received.
    public var received: Int64 = 0

    /// Creates the metrics of a request that has just ended, for example in tests of a program.
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - duration: the time from the start of the request until now.
    public init(method: HTTPSemantics.Method, duration: Duration) {
        self.method = method
        self.duration = duration
        startedAt = Date(timeIntervalSinceNow: -(duration / .seconds(1)))
    }

    /// The maximum number of requests whose metrics a transfer keeps.
    package static let keptCount = 50
}

/// Detects that no byte has moved for too long.
package struct ActivityWatch {
    /// The maximum time in nanoseconds in which no byte moves; `nil`: no limit.
    private let limit: Int64?
    /// The time at which a byte moved last, in monotonic nanoseconds.
    package private(set) var lastActivity: Int64
    private var moved: Int64 = 0
    private var queue: Int32?
    private var queueLookedAt: Int64

    package init(limit: Duration?, now: Int64) {
        self.limit = limit?.nanoseconds
        lastActivity = now
        queueLookedAt = now
    }

    /// Notes how many bytes have moved so far.
    /// - Parameter isWaiting: whether no byte can move now for a valid reason.
    package mutating func note(moved: Int64, isWaiting: Bool, now: Int64) {
        guard isWaiting || moved != self.moved else { return }
        self.moved = moved
        lastActivity = now
    }

    /// The time at which ``isStalled(now:output:)`` has to be called again; `nil`: never.
    package var nextTime: Int64? { limit.map { min(lastActivity + $0, queueLookedAt + $0 / 4 + 1) } }

    /// Whether nothing has moved for too long.
    /// - Parameter output: bytes that the peer has not acknowledged. They may be the only bytes that move, because the
    ///   kernel buffers megabytes, and a slow network transfers them for minutes.
    package mutating func isStalled(now: Int64, output: () -> Int32?) -> Bool {
        guard let limit else { return false }
        if now - queueLookedAt >= limit / 4 || now - lastActivity >= limit {
            let before = queue
            queue = output()
            queueLookedAt = now
            if let queue, let before, queue != before { lastActivity = now }
        }
        return now - lastActivity >= limit
    }
}

/// Reports the progress of an exchange. While bytes move, it reports at most every 100 ms, first 100 ms after the start.
/// If bytes of a response have arrived and no more move, it reports every 250 ms, so that work that depends on the time
/// alone is also done on a stalled connection.
package struct ProgressReports {
    private static let interval: Int64 = 100_000_000
    private static let repetition: Int64 = 250_000_000

    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var lastReport: Int64

    /// The time of the next report; `nil`: there is nothing to report yet.
    package private(set) var nextTime: Int64?

    /// - Parameter startedAt: the time at which the exchange starts, in monotonic nanoseconds.
    package init(startedAt: Int64) { lastReport = startedAt }

    /// Reports the counts, changed or unchanged, if a report is due.
    package mutating func report(
        sent: Int64?, received: Int64, now: Int64, to report: (TransportEvent) -> Void
    ) {
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
        if let sent, sent != self.sent { report(.sent(sent)) }
        if received > 0 { report(.received(received)) }
        self.sent = sent ?? 0
        self.received = received
    }
}

/// Limits a rate in bytes per second with a token bucket.
package struct RatePacer {
    private let rate: Double
    /// The bytes that may be moved now; below zero if more were moved than were allowed.
    private var allowance: Double
    private var filledAt: Int64

    /// - Parameters:
    ///   - rate: bytes per second; at least one.
    ///   - now: monotonic nanoseconds, as for all times of this type.
    package init(rate: Int64, now: Int64) {
        self.rate = Double(max(rate, 1))
        allowance = 0
        filledAt = now
        allowance = portion
    }

    /// The number of bytes in one step at a steady rate: the bytes of a tenth of a second.
    private var portion: Double { max(rate / 10, 1) }

    /// The bytes that may move now; 0 or less: none.
    package mutating func available(at now: Int64) -> Int64 {
        // After a delay at most two portions are available at once.
        allowance = min(allowance + Double(now - filledAt) / 1e9 * rate, 2 * portion)
        filledAt = now
        return Int64(max(allowance, -1e15))
    }

    package mutating func spend(_ count: Int) { allowance -= Double(count) }

    /// The time at which a portion is available again.
    package var nextTime: Int64 {
        let seconds = max(portion - allowance, 0) / rate
        return filledAt + Int64(min(seconds * 1e9, 1e17)) + 1
    }
}

/// The times at which the parts of an exchange began and ended, in monotonic nanoseconds; `nil` before that.
package struct ExchangeTimes {
    package let startedAt: Int64
    package var requestStart: Int64?
    package var requestEnd: Int64?
    package var responseStart: Int64?

    package init(startedAt: Int64) {
        self.startedAt = startedAt
    }

    /// The metrics of an exchange that ends now.
    /// - Parameter head: the head of the final response.
    package func metrics(method: Method, head: ClientResponseHead?, now: Int64) -> RequestMetrics {
        let elapsed: (Int64?) -> Duration? = { time in time.map { .nanoseconds($0 - startedAt) } }
        var metrics = RequestMetrics(method: method, duration: .nanoseconds(now - startedAt))
        metrics.status = head?.status
        metrics.httpVersion = head?.version
        metrics.requestStart = elapsed(requestStart)
        metrics.requestEnd = elapsed(requestEnd)
        metrics.responseStart = elapsed(responseStart)
        return metrics
    }
}
