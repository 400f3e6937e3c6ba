import UploadStorage

/// The counts of a node's sessions and holds.
struct NodeCounts: Sendable {
    var session = SharedStorageStatistics.Session()
    var holds = SharedStorageStatistics.Holds()
}

extension ClusterNode {
    /// Sets the statistics of the session and of the holds to the numbers of this node.
    func add(to statistics: inout SharedStorageStatistics) {
        let counts = counts.withLock { $0 }
        (statistics.session, statistics.holds) = (counts.session, counts.holds)
        let (held, remaining) = session.withLock { ($0.heldCount, $0.remainingTime(at: Self.now)) }
        statistics.holds.held = held
        statistics.session.secondsLeft = Double(remaining) / 1e9
    }
}
