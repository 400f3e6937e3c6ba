import HTTPSemantics

/// The number of retries of an interrupted transfer, and the delays before them.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum delays before the first, second and further retries; the last one is used for all later retries.
    /// After an interruption the actual delay is a random part of the maximum, so that the clients of a restarted server
    /// do not reconnect at the same time. After a response with an error it is at least half of the maximum; if the
    /// maximum is 0, the first delay above 0 is used.
    public var delays: [Duration] = [0, 1, 2, 4, 8, 15, 30].map { .seconds($0) }
    /// The maximum number of retries without progress; progress resets the count.
    public var maxRetriesWithoutProgress: Int = 8
    /// The maximum delay that is accepted from `Retry-After`.
    public var maxRetryAfter: Duration = .seconds(600)

    /// Creates the default policy.
    public init() {}

    /// The delay before retry number `attempt`, starting with 1.
    /// - Parameters:
    ///   - random: in 0..<1.
    ///   - isRefused: whether the server responded with an error. The delay is then at least half of the maximum, or of
    ///     the first delay above 0 if the maximum is 0.
    package func delay(before attempt: Int, random: Double, isRefused: Bool = false) -> Duration {
        guard let last = delays.last, attempt > 0 else { return .zero }
        let maxDelay = max(attempt <= delays.count ? delays[attempt - 1] : last, .zero)
        guard isRefused else { return maxDelay * random }
        let positive = maxDelay > .zero ? maxDelay : delays.first { $0 > .zero } ?? .zero
        return positive * (0.5 + random / 2)
    }

    /// The delay that `Retry-After` (RFC 9110 section 10.2.3) requests, as seconds or a date; `nil` if it is absent or
    /// malformed.
    /// - Parameter now: seconds since 1970.
    package func retryAfter(_ fields: Fields, now: Int64) -> Duration? {
        let values = fields.values("Retry-After")
        guard values.count == 1, let value = values.first, !value.isEmpty else { return nil }
        let seconds: Int64
        if value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            seconds = Int64(value) ?? .max
        } else {
            guard let date = HTTPDate(parsing: value, relativeTo: HTTPDate(secondsSinceEpoch: now)) else { return nil }
            seconds = date.secondsSinceEpoch - now
        }
        return min(max(.zero, .seconds(seconds)), maxRetryAfter)
    }
}

extension Status {
    /// Whether a retry can have another result: 408, 423, 425, 429 and 5xx, except 501 and 505, which mean that the
    /// server lacks a feature.
    package var isTransient: Bool {
        isServerError ? rawValue != 501 && rawValue != 505 : [408, 423, 425, 429].contains(rawValue)
    }

    /// Whether other credentials can have another result: 401, 403 and 407.
    package var isUnauthorized: Bool { [401, 403, 407].contains(rawValue) }
}
