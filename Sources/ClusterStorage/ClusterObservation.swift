import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// Counts what a server does with its database and its object storage, and reports their errors to the log.
package final class ClusterObservation: Sendable {
    /// A line for the log of the server.
    package struct Note: Sendable, Hashable {
        package var isProblem: Bool
        package var text: String
    }

    private struct State {
        var statistics = SharedStorageStatistics()
        var database = FailureReport("the database")
        var objects = FailureReport("the object storage")
        /// The notes from before the call of ``onNote(_:)``, at most `maxNotes`.
        var notes: [Note] = []
        /// The closure of ``onNote(_:)``.
        var handler: (@Sendable (Note) -> Void)?
    }

    private static let maxNotes = 20

    /// What an operator can do if the database denies the role of the server something.
    private static let adviceAboutRights =
        "the role of the server needs CREATE on the database (GRANT CREATE, CONNECT ON DATABASE ...) and has to own the"
        + " schema onward; see \"Rights\" in docs/scale.md"

    private let state: Monitor<State>

    package init() {
        var state = State()
        state.statistics.transactions = .init(results: ["committed", "refused", "unavailable", "unknown"])
        for operation in ObservedObjectStore.Operation.allCases {
            state.statistics.objects[operation.rawValue] = .init(results: [
                "done", "not-found", "refused", "unavailable",
            ])
        }
        self.state = Monitor(state)
    }

    /// The counts of requests and transactions.
    var statistics: SharedStorageStatistics { state.withLock { $0.statistics } }

    /// Calls `body` with each line for the log, first with those from before this call. `body` must not block.
    package func onNote(_ body: @escaping @Sendable (Note) -> Void) {
        let notes = state.withLock { state in
            state.handler = body
            defer { state.notes = [] }
            return state.notes
        }
        for note in notes { body(note) }
    }

    func record(_ report: DatabaseReport) {
        let result =
            switch report.error {
            case nil: "committed"
            case .unavailable(_, isPossiblyCommitted: false): "unavailable"
            case .unavailable(_, isPossiblyCommitted: true): "unknown"
            // An error of the database, or a rejection by one of our functions.
            case .failed: "refused"
            }
        note { state in
            state.statistics.transactions.count(result, nanoseconds: report.nanoseconds)
            state.statistics.repeatedTransactions += report.repetitions
            let now = SystemClock.monotonicNanoseconds()
            switch report.error {
            // One of our functions in the database rejected the change, so the database works.
            case .failed(let sqlState, _)? where sqlState.hasPrefix("ON"): return state.database.succeeded(at: now)
            case .failed(let sqlState, let message)?:
                // insufficient_privilege
                let advice = sqlState == "42501" ? "; " + Self.adviceAboutRights : ""
                return state.database.failed(sqlState, "\(message) (SQLSTATE \(sqlState))\(advice)", at: now)
            case .unavailable(let reason, _)?:
                return state.database.failed("", "the database is unavailable: \(reason)", at: now)
            case nil: return state.database.succeeded(at: now)
            }
        }
    }

    /// - Parameter canBucketBeMissing: whether a missing bucket is no problem, because the storage may create it later.
    func record(
        _ operation: ObservedObjectStore.Operation, _ error: ObjectError?, nanoseconds: Int64, bytes: Int,
        canBucketBeMissing: Bool = false
    ) {
        let result =
            switch error {
            case nil: "done"
            case .notFound: "not-found"
            case .refused: "refused"
            case .unavailable: "unavailable"
            }
        note { state in
            state.statistics.objects[operation.rawValue]?.count(result, nanoseconds: nanoseconds, bytes: Int64(bytes))
            let now = SystemClock.monotonicNanoseconds()
            switch error {
            case nil, .notFound: return state.objects.succeeded(at: now)
            case .refused? where canBucketBeMissing && error?.isMissingBucket == true: return nil
            case .refused(let status, let code, _)?:
                return state.objects.failed(
                    "\(status) \(code)", "\(error?.description ?? "") (\(operation.activity))", at: now)
            case .unavailable?:
                return state.objects.failed("", "\(error?.description ?? "") (\(operation.activity))", at: now)
            }
        }
    }

    func report(_ note: Note) { self.note { _ in note } }

    private func note(_ body: (inout State) -> Note?) {
        let call = state.withLock { state -> (Note, @Sendable (Note) -> Void)? in
            guard let note = body(&state) else { return nil }
            if let handler = state.handler { return (note, handler) }
            if state.notes.count < Self.maxNotes { state.notes.append(note) }
            return nil
        }
        if let (note, handler) = call { handler(note) }
    }
}

/// Decides which errors of a service are written to the log: the first error, the first error of each further kind, and
/// the end of the errors. It is a value type: it reads no clock, and does no I/O.
struct FailureReport {
    /// The time without an error, in nanoseconds, after which the service counts as working. Errors with successful
    /// requests between them belong to one failure.
    static let quietTime: Int64 = 10_000_000_000
    private static let maxKinds = 8

    private let name: String
    /// The kinds of errors that were written since the service began to fail.
    private var kinds: Set<String> = []
    private var count = 0
    private var first: Int64 = 0
    private var last: Int64 = 0

    init(_ name: String) { self.name = name }

    mutating func failed(_ kind: String, _ text: String, at now: Int64) -> ClusterObservation.Note? {
        if kinds.isEmpty { (count, first) = (0, now) }
        count += 1
        last = now
        guard kinds.count < Self.maxKinds, kinds.insert(kind).inserted else { return nil }
        return .init(isProblem: true, text: text.split(whereSeparator: \.isNewline).joined(separator: " "))
    }

    mutating func succeeded(at now: Int64) -> ClusterObservation.Note? {
        guard !kinds.isEmpty, now - last >= Self.quietTime else { return nil }
        kinds = []
        let seconds = (last - first) / 1_000_000_000
        return .init(
            isProblem: false,
            text:
                "\(name) works again; \(count) \(count == 1 ? "request" : "requests") failed within \(seconds) s"
        )
    }
}

/// An object storage whose operations are recorded.
struct ObservedObjectStore: ObjectStore {
    enum Operation: String, CaseIterable {
        case put, get, delete, list

        /// The words for a line of the log.
        var activity: String {
            switch self {
            case .put: "while storing an object"
            case .get: "while reading an object"
            case .delete: "while deleting objects"
            case .list: "while listing objects"
            }
        }
    }

    let store: any ObjectStore
    let observation: ClusterObservation

    func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
        try observing(.put) { (bytes) throws(ObjectError) in
            try store.put(key, content, until: deadline)
            bytes = content.count
        }
    }

    func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
        try observing(.put) { (bytes) throws(ObjectError) in
            let isNew = try store.create(key, content, until: deadline)
            if isNew { bytes = content.count }
            return isNew
        }
    }

    func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
    ) throws(ObjectError) -> Int {
        // This object is read first. The storage may create the bucket when this object is stored; otherwise storing fails
        // with the same error.
        try observing(.get, canBucketBeMissing: key == PieceCollector.identityKey) { (bytes) throws(ObjectError) in
            bytes = try store.get(key, range, into: buffer, until: deadline)
            return bytes
        }
    }

    func delete(_ keys: [String]) throws(ObjectError) {
        try observing(.delete) { (_) throws(ObjectError) in try store.delete(keys) }
    }

    func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing] {
        try observing(.list) { (_) throws(ObjectError) in try store.list(prefix: prefix, after: after, limit: limit) }
    }

    func presignedURL(
        _ key: String, validFor time: Duration, responseFields: [(name: String, value: String)]
    ) throws(ObjectError) -> String? {
        try store.presignedURL(key, validFor: time, responseFields: responseFields)
    }

    private func observing<Result>(
        _ operation: Operation, canBucketBeMissing: Bool = false, _ body: (inout Int) throws(ObjectError) -> Result
    ) throws(ObjectError) -> Result {
        let start = SystemClock.monotonicNanoseconds()
        var bytes = 0
        var failure: ObjectError?
        defer {
            observation.record(
                operation, failure, nanoseconds: SystemClock.monotonicNanoseconds() - start, bytes: bytes,
                canBucketBeMissing: canBucketBeMissing)
        }
        do throws(ObjectError) { return try body(&bytes) } catch {
            failure = error
            throw error
        }
    }
}
