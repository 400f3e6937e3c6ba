import CCurl
import HTTPSemantics
import ResumableUpload

/// The times at which the parts of an exchange began and ended, in monotonic nanoseconds; `nil` before that.
struct ExchangeTimes {
    let startedAt: Int64
    var requestStart: Int64?
    var requestEnd: Int64?
    var responseStart: Int64?

    init(startedAt: Int64) {
        self.startedAt = startedAt
    }

    /// The metrics of an exchange that ends now.
    /// - Parameters:
    ///   - easy: the handle of the exchange; `nil` for an exchange with a ``MockTransport``.
    ///   - head: the head of the final response.
    func metrics(method: Method, easy: EasyHandle?, head: ClientResponseHead?, now: Int64) -> RequestMetrics {
        let elapsed: (Int64?) -> Duration? = { time in time.map { .nanoseconds($0 - startedAt) } }
        var metrics = RequestMetrics(method: method, duration: .nanoseconds(now - startedAt))
        metrics.status = head?.status
        metrics.httpVersion = head?.version
        metrics.requestStart = elapsed(requestStart)
        metrics.requestEnd = elapsed(requestEnd)
        metrics.responseStart = elapsed(responseStart)
        guard let easy else { return metrics }
        metrics.isConnectionReused = requestStart != nil && easy.isConnectionReused
        if !metrics.isConnectionReused {
            metrics.nameLookup = easy.time(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connect = easy.time(CURLINFO_CONNECT_TIME_T)
            metrics.secureConnect = easy.time(CURLINFO_APPCONNECT_TIME_T)
        }
        return metrics
    }
}
