/// The numbers of this server's work with a storage that several servers share. Counts begin when the store was opened.
package struct SharedStorageStatistics: Sendable, Hashable {
    /// The session of this server in the database.
    package struct Session: Sendable, Hashable {
        /// The seconds for which the server can still rely on the session without another renewal; 0 if it has none.
        package var secondsLeft = 0.0
        package var renewals = 0
        package var failedRenewals = 0
        /// The number of sessions that have ended before the server was stopped.
        package var lost = 0

        package init() {}
    }

    /// The unfinished uploads that only this server can change.
    package struct Holds: Sendable, Hashable {
        package var held = 0
        /// Holds that began with a request for an upload that existed.
        package var acquired = 0
        /// Holds that were released because another server has requested the upload.
        package var releasedOnRequest = 0
        /// Holds that have ended with a lost session.
        package var lost = 0
        /// Requests that wait until another server has released an upload.
        package var waiting = 0

        package init() {}
    }

    /// Operations of one kind.
    package struct Operations: Sendable, Hashable {
        /// The numbers by result. A result is a word that is a label of a metric.
        package var counts: [String: Int]
        package var seconds = Histogram(bounds: Histogram.storageSeconds)
        /// Bytes of content that were stored or read.
        package var bytes: Int64 = 0

        /// - Parameter results: the words that are present from the start.
        package init(results: [String]) {
            counts = Dictionary(results.map { ($0, 0) }, uniquingKeysWith: { first, _ in first })
        }

        package mutating func count(_ result: String, nanoseconds: Int64, bytes: Int64 = 0) {
            counts[result, default: 0] += 1
            seconds.observe(Double(nanoseconds) / 1e9)
            self.bytes += bytes
        }
    }

    /// The removal of objects that are not needed.
    package struct Collection: Sendable, Hashable {
        /// The objects that wait for their deletion, at most a million, and the age of the oldest one in seconds; nil if
        /// the database cannot be read.
        package var garbage: Int?
        package var oldestGarbage: Int64?
        /// The seconds since the next page of each search was due, by the name of the search; 0 if it is not due.
        package var overdue: [String: Int64] = [:]
        /// Objects that this server has deleted, because a row has named them before, or because no row has named them.
        package var deletedGarbage = 0
        package var deletedOrphans = 0
        /// The number of searches for objects that can be deleted, including failed ones.
        package var runs = 0
        package var failedRuns = 0

        package init() {}
    }

    package var session = Session()
    package var holds = Holds()
    /// The requests to the object storage by operation.
    package var objects: [String: Operations] = [:]
    /// Requests to the object storage that were repeated after a temporary error.
    package var repeatedRequests = 0
    package var transactions = Operations(results: [])
    /// Transactions that were repeated because of another transaction.
    package var repeatedTransactions = 0
    package var collection = Collection()

    package init() {}
}
