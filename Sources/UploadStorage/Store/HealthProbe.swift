/// Decides which request for the store's health runs a check, and which result the other requests get. It is a value:
/// the caller runs the check, and waits.
///
/// One check runs at a time, and its result is used for a second. While a check runs, other requests get the last
/// result immediately. If a check has not ended after ``timeout``, the store is not ready.
struct HealthProbe {
    enum Decision: Equatable {
        case answer(Health)
        /// No check is running, and the last result is too old: run a check, and wait for it.
        case check
        /// Wait for the check that is running.
        case wait
    }

    /// The time in nanoseconds for which a result is used.
    static let validity: Int64 = 1_000_000_000
    /// The time in nanoseconds after which a running check counts as stuck.
    static let timeout: Int64 = 3_000_000_000
    static let stuck = Health(ready: false, reasons: ["store-check-stuck"])

    /// The result of the last check that ended.
    private(set) var last: Health?
    private(set) var checks = 0
    private var validUntil = Int64.min
    private var startedAt: Int64?

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - acceptsLast: whether the last result is enough while a check is running.
    func decision(at now: Int64, acceptsLast: Bool) -> Decision {
        if let startedAt {
            guard acceptsLast else { return .wait }
            if now - startedAt >= Self.timeout { return .answer(Self.stuck) }
            return last.map { .answer($0) } ?? .wait
        }
        if let last, now < validUntil { return .answer(last) }
        return .check
    }

    mutating func begin(at now: Int64) { startedAt = now }

    mutating func end(_ health: Health, at now: Int64) {
        last = health
        checks += 1
        startedAt = nil
        validUntil = now + Self.validity
    }
}

/// Whether the store can accept new uploads now, and if not, why.
public struct Health: Sendable, Hashable {
    /// Whether new uploads can be accepted.
    public var ready: Bool
    /// The reasons why the store is not ready, each a stable word; empty if it is ready.
    public var reasons: [String]

    /// Creates a result; `reasons` is empty if the store is ready.
    public init(ready: Bool, reasons: [String] = []) {
        self.ready = ready
        self.reasons = reasons
    }
}
