import HTTPSemantics
import SystemCalls
import UploadStorage

/// The counters of a running server. The lock is acquired when a request ends and when offsets become durable, but not
/// for each piece of content.
final class ServerMetrics: StoreObserver {
    private let counts = Monitor(ServerCounts())

    /// The current counters.
    var snapshot: ServerCounts { counts.withLock { $0 } }

    func record(_ request: RequestSummary) { counts.withLock { $0.record(request) } }

    /// Counts the content of a request in progress that was not counted before. `total` is the number of bytes that the
    /// request has received so far.
    func count(received total: Int64, of request: RequestContext) {
        let bytes = total - request.countedReceived
        request.countedReceived = total
        counts.withLock { $0.add(received: bytes) }
    }

    func count(expired uploads: Int) {
        if uploads > 0 { counts.withLock { $0.add(expired: uploads) } }
    }

    func count(connectionsAtLimit connections: Int) { counts.withLock { $0.add(connectionsAtLimit: connections) } }

    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool) {
        counts.withLock { $0.record(step, nanoseconds: nanoseconds, isDone: isDone) }
    }
}

/// The counters of a server since its start: a value without locks or clocks.
struct ServerCounts: Sendable {
    /// One time series of requests.
    struct RequestSeries: Sendable, Hashable, Comparable {
        var route: String
        /// A supported HTTP method, or `other`.
        var method: String
        /// The status code, or `none` if no response was sent.
        var status: String

        static func < (left: RequestSeries, right: RequestSeries) -> Bool {
            (left.route, left.method, left.status) < (right.route, right.method, right.status)
        }

        static let others = RequestSeries(route: "other", method: "other", status: "other")
    }

    /// One time series of forwarded requests.
    struct ForwardedSeries: Sendable, Hashable, Comparable {
        var route: String
        var outcome: ForwardingReport.Outcome

        static func < (left: ForwardedSeries, right: ForwardedSeries) -> Bool {
            (left.route, left.outcome.rawValue) < (right.route, right.outcome.rawValue)
        }
    }

    /// Durations and failures of one kind of synchronization.
    struct Steps: Sendable {
        var seconds = Histogram(bounds: Histogram.storageSeconds)
        var failures = 0
    }

    private(set) var requests = BoundedCounts<RequestSeries>(capacity: 1000, others: .others)
    private(set) var errors = BoundedCounts<String>(capacity: 200, others: "other")
    private(set) var interruptions = BoundedCounts<String>(
        capacity: 20, others: "other",
        known: ["client"] + ConnectionEntry.CloseReason.allCases.map(\.rawValue))
    private(set) var omissions = BoundedCounts<String>(capacity: 50, others: "other", known: InterimOmission.words)
    private(set) var forwarded = BoundedCounts<ForwardedSeries>(
        capacity: 600, others: ForwardedSeries(route: "other", outcome: .answered))
    private(set) var forwardedSeconds: [String: Histogram] = [:]
    private(set) var checks = BoundedCounts<String>(
        capacity: 10, others: "other", known: CheckReport.Outcome.allCases.map(\.rawValue))
    private(set) var checkSeconds = Histogram(bounds: Histogram.responseSeconds)
    private(set) var announcements = 0
    private(set) var offsets = 0
    private(set) var created = 0
    private(set) var completed = 0
    private(set) var resumed = 0
    private(set) var takenOver = 0
    private(set) var received: Int64 = 0
    private(set) var sent: Int64 = 0
    private(set) var expired = 0
    private(set) var connectionsAtLimit = 0
    private(set) var steps: [DurableStep: Steps] = Dictionary(
        uniqueKeysWithValues: DurableStep.allCases.map { ($0, Steps()) })

    private static let methods: Set<Method> = [.get, .head, .put, .post, .patch, .delete, .options]

    /// Counts a finished request.
    mutating func record(_ request: RequestSummary) {
        let method = Method(rawValue: request.method)
        requests.add(
            to: RequestSeries(
                route: request.route, method: Self.methods.contains(method) ? method.rawValue : "other",
                status: request.status.map { "\($0)" } ?? "none"))
        if let code = request.code, request.status != nil {
            errors.add(to: ProblemCode.isValidLabel(code) ? code : "other")
        }
        if let interruption = request.interruption { interruptions.add(to: interruption) }
        if request.interruption == ConnectionEntry.CloseReason.takenOver.rawValue { takenOver += 1 }
        created += request.progress.hasCreated ? 1 : 0
        resumed += request.progress.hasResumed ? 1 : 0
        completed += request.progress.hasCompleted ? 1 : 0
        received += request.received - request.countedReceived
        sent += request.sent
        if let report = request.forwarding {
            forwarded.add(to: ForwardedSeries(route: request.route, outcome: report.outcome))
            forwardedSeconds[request.route, default: Histogram(bounds: Histogram.responseSeconds)]
                .observe(Double(report.nanoseconds) / 1e9)
        }
        if let check = request.check {
            checks.add(to: check.outcome.rawValue)
            checkSeconds.observe(Double(check.nanoseconds) / 1e9)
        }
        guard let explanation = request.explanation else { return }
        announcements += explanation.announcements
        offsets += explanation.offsets
        if let omission = explanation.omission { omissions.add(to: omission.word) }
    }

    /// Counts content of a request in progress.
    mutating func add(received bytes: Int64) { received += bytes }

    mutating func add(expired uploads: Int) { expired += uploads }

    mutating func add(connectionsAtLimit connections: Int) { connectionsAtLimit += connections }

    mutating func record(_ step: DurableStep, nanoseconds: Int64, isDone: Bool) {
        steps[step]?.seconds.observe(Double(nanoseconds) / 1e9)
        if !isDone { steps[step]?.failures += 1 }
    }
}

/// Counts by key for a bounded number of keys. Further keys are counted under one common key.
///
/// So memory and the number of time series are bounded for any input.
struct BoundedCounts<Key: Hashable & Sendable>: Sendable {
    private(set) var counts: [Key: Int]
    private let capacity: Int
    private let others: Key

    /// - Parameter known: keys that are present from the start, with the count 0.
    init(capacity: Int, others: Key, known: [Key] = []) {
        self.capacity = capacity
        self.others = others
        counts = Dictionary(known.map { ($0, 0) }, uniquingKeysWith: { first, _ in first })
    }

    mutating func add(_ count: Int = 1, to key: Key) {
        if let index = counts.index(forKey: key) {
            counts.values[index] += count
        } else {
            counts[counts.count < capacity ? key : others, default: 0] += count
        }
    }

    subscript(key: Key) -> Int { counts[key] ?? 0 }
}

extension BoundedCounts where Key: Comparable {
    var sorted: [(key: Key, count: Int)] { counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
}
