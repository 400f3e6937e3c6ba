import HTTPSemantics
import UploadStorage

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
    private(set) var announcements = 0
    private(set) var offsets = 0
    private(set) var created = 0
    private(set) var completed = 0
    private(set) var resumed = 0
    private(set) var takenOver = 0
    private(set) var received: Int64 = 0
    private(set) var sent: Int64 = 0
    private(set) var expired = 0
    private(set) var refusedConnections = 0
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
        if let code = request.code, request.status != nil { errors.add(to: Self.isValidLabel(code) ? code : "other") }
        if let interruption = request.interruption { interruptions.add(to: interruption) }
        if request.interruption == ConnectionEntry.CloseReason.takenOver.rawValue { takenOver += 1 }
        created += request.progress.hasCreated ? 1 : 0
        resumed += request.progress.hasResumed ? 1 : 0
        completed += request.progress.hasCompleted ? 1 : 0
        received += request.received - request.countedReceived
        sent += request.sent
        guard let explanation = request.explanation else { return }
        announcements += explanation.announcements
        offsets += explanation.offsets
        if let omission = explanation.omission { omissions.add(to: omission.word) }
    }

    /// Counts content of a request in progress.
    mutating func add(received bytes: Int64) { received += bytes }

    mutating func add(expired uploads: Int) { expired += uploads }

    mutating func add(refusedConnections connections: Int) { refusedConnections += connections }

    mutating func record(_ step: DurableStep, nanoseconds: Int64, isDone: Bool) {
        steps[step]?.seconds.observe(Double(nanoseconds) / 1e9)
        if !isDone { steps[step]?.failures += 1 }
    }

    /// Whether a code can be a label; a target can respond with any text as its code.
    private static func isValidLabel(_ code: String) -> Bool {
        (1...64).contains(code.utf8.count)
            && code.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    }
}
