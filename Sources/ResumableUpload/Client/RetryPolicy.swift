import HTTPSemantics

/// When an interrupted transfer is tried again.
public struct RetryPolicy: Sendable, Hashable {
    /// Seconds to wait before the first, second … further try at most; after the last one it stays at that. The wait is
    /// a random part of it, so that the clients of a server that comes back do not come back all at once.
    public var delays: [Double] = [0, 1, 2, 4, 8, 15, 30]
    /// How many further tries may bring no progress; progress starts the count anew.
    public var triesWithoutProgress: Int = 8
    /// Seconds that a `Retry-After` is followed for at most.
    public var maximumRetryAfter: Double = 600

    public init() {}

    /// How long to wait before further try number `attempt`, the first being 1.
    /// - Parameters:
    ///   - random: in 0..<1.
    ///   - isRefused: whether the server said that this is not the time: it is not asked again at once, but after half of
    ///     the wait at least.
    package func delay(before attempt: Int, random: Double, isRefused: Bool = false) -> Duration {
        guard let last = delays.last, attempt > 0 else { return .zero }
        let longest = attempt <= delays.count ? delays[attempt - 1] : last
        guard isRefused else { return .milliseconds(Int64(max(0, longest) * random * 1000)) }
        let positive = longest > 0 ? longest : delays.first { $0 > 0 } ?? 0
        return .milliseconds(Int64(positive * (0.5 + random / 2) * 1000))
    }

    /// How long `Retry-After` (RFC 9110 section 10.2.3) asks to wait, seconds or a date; `nil` where it is absent or
    /// void.
    /// - Parameter now: seconds since 1970.
    package func retryAfter(_ fields: Fields, now: Int64) -> Duration? {
        let values = fields.values("Retry-After")
        guard values.count == 1, let value = values.first, !value.isEmpty else { return nil }
        var seconds: Double
        if value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            seconds = Int64(value).map(Double.init) ?? .infinity
        } else {
            guard let date = HTTPDate(parsing: value, relativeTo: HTTPDate(secondsSinceEpoch: now)) else { return nil }
            seconds = Double(date.secondsSinceEpoch) - Double(now)
        }
        seconds = min(max(0, seconds), maximumRetryAfter)
        return .milliseconds(Int64(seconds * 1000))
    }
}

extension Status {
    /// Whether another try may be answered otherwise: 408, 423, 425, 429 and 5xx but for those that name a missing
    /// ability of the server (501, 505).
    package var isTransient: Bool {
        isServerError ? rawValue != 501 && rawValue != 505 : [408, 423, 425, 429].contains(rawValue)
    }
}
