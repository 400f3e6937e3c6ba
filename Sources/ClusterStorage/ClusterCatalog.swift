import HTTPSemantics
import PostgreSQL
import ResumableUpload
import SystemCalls
import UploadStorage

/// The catalog in a PostgreSQL database that several nodes share. All changes that wait are made in one transaction.
package final class ClusterCatalog: UploadCatalog {
    let node: ClusterNode
    let ledger: PieceLedger
    let limits: Limits
    let commits = SharedWork<CatalogChange, Outcome>()
    let counts = Monitor(CatalogStatistics())

    /// The outcome of a change.
    typealias Outcome = Result<RemovedRows, StoreError>

    /// The limits of each principal, which hold for all nodes together.
    struct Limits {
        var maxUploads: Int64?
        var quota: Int64?

        var isLimited: Bool { maxUploads != nil || quota != nil }
    }

    /// - Parameters:
    ///   - node: the open node, which ``close(saving:)`` closes.
    ///   - ledger: the ledger of the blob area.
    ///   - configuration: the limits of each principal.
    package init(node: ClusterNode, ledger: PieceLedger, configuration: StoreConfiguration) {
        self.node = node
        self.ledger = ledger
        limits = Limits(
            maxUploads: configuration.maxUploadsPerPrincipal.map(Int64.init), quota: configuration.quotaPerPrincipal)
    }

    package func close(saving totals: CatalogTotals?) { if commits.close() { node.close() } }

    package var statistics: CatalogStatistics { counts.withLock { $0 } }

    package func onEvents(_ body: @escaping @Sendable () -> Void) { node.onEvents(body) }

    // MARK: Holds

    package var isShared: Bool { true }

    /// The time between two attempts to acquire an upload, in nanoseconds: notifications can be lost.
    private static let attemptPause: Int64 = 200_000_000

    package func acquire(_ id: UploadID, until deadline: Int64) throws(StoreError) -> HeldRow? {
        try node.acquiring(id) { () throws(StoreError) in
            while true {
                let now = SystemClock.monotonicNanoseconds()
                // Each use has a fence of its own, even if this node holds the upload already. So the end of an earlier
                // use, and a release that is on its way, cannot end this hold. The acquisition is a batch: if its
                // outcome becomes unknown, it is resolved, and cannot raise the fence later.
                let (number, results) = try node.translating { () throws(DatabaseError) in
                    try node.change { number in
                        [
                            DatabaseStatement(
                                ClusterSQL.acquire, [.bytes(id.bytes), .integer(number), .boolean(now < deadline)])
                        ]
                    }
                }
                let rows = results[0]
                if rows.count == 0 { return nil }
                let row = try CatalogRow(rows, 0)
                guard let fence = rows.integer(0, 13) else { throw .damaged("a row of an upload lacks its fence") }
                if !row.isUnfinished {
                    node.session.withLock { $0.removeHold(id) }
                    return HeldRow(row: row, fence: fence)
                }
                if rows.integer(0, 12) == number {
                    let hold = NodeSession.Hold(fence: fence, blob: row.blob, principal: row.upload.principal)
                    node.session.withLock { $0.acquired(id, hold, by: number) }
                    node.counts.withLock { $0.holds.acquired += 1 }
                    return HeldRow(row: row, fence: fence)
                }
                if now >= deadline { throw .heldElsewhere }
                node.waitForRelease(of: id, until: min(deadline, now + Self.attemptPause))
            }
        }
    }

    package func release(_ id: UploadID, fence: Int64) {
        let release = node.session.withLock { $0.released(id, fence: fence) }
        if let release { node.enqueue(release) }
    }

    package func holds(_ id: UploadID, fence: Int64) -> Bool {
        node.session.withLock { $0.hold(id, at: ClusterNode.now)?.fence == fence }
    }

    package func isCurrent(_ fence: Int64, of id: UploadID) throws(StoreError) -> Bool {
        let rows = try node.read(ClusterSQL.isCurrent, [.bytes(id.bytes), .integer(fence)])
        if rows.boolean(0, 0) == true { return true }
        node.session.withLock { session in
            if session.lastHold(id)?.fence == fence { session.removeHold(id) }
        }
        return false
    }

    package func onHolds(
        requested: @escaping @Sendable (UploadID) -> Void, lost: @escaping @Sendable ([UploadID]) -> Void
    ) {
        node.onHolds(requested: requested, lost: lost)
    }

    package var isReceivingNotifications: Bool { node.isReceivingNotifications }

    // MARK: Reads

    package func awaitOutcomes() throws(StoreError) {
        try node.translating { () throws(DatabaseError) in try node.awaitOutcomes {} }
    }

    package func row(_ id: UploadID) throws(StoreError) -> CatalogRow? {
        let rows = try node.read(ClusterSQL.selectUpload, [.bytes(id.bytes)])
        return rows.count == 0 ? nil : try CatalogRow(rows, 0)
    }

    package func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow] {
        let rows = try node.read(ClusterSQL.selectUploads, [.bytes(id?.bytes ?? []), .integer(Int64(limit))])
        return try (0..<rows.count).map { (index) throws(StoreError) in try CatalogRow(rows, index) }
    }

    package func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID] {
        try readInSession(ClusterSQL.selectProcessing, [.bytes(id?.bytes ?? []), .integer(Int64(limit))]).uploads
    }

    /// - Parameter parameters: those after the number of the session.
    private func readInSession(_ sql: String, _ parameters: [DatabaseValue]) throws(StoreError) -> DatabaseRows {
        try node.read(sql, [.integer(try node.currentSession())] + parameters)
    }

    package func processingCount() throws(StoreError) -> Int {
        Int(try node.read(ClusterSQL.countProcessing).integer(0, 0) ?? 0)
    }

    package func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] {
        try readInSession(ClusterSQL.selectExpired, [.integer(now), .integer(Int64(limit))]).uploads
    }

    package func isExpiring(after time: Int64) throws(StoreError) -> Bool {
        try node.read(ClusterSQL.selectExpiringLater, [.integer(time)]).boolean(0, 0) ?? false
    }

    package func needsBlob(_ name: String) throws(StoreError) -> Bool {
        try node.read(ClusterSQL.selectBlob, [.text(name)]).boolean(0, 0) ?? true
    }

    package func file(_ name: String) throws(StoreError) -> FileRecord? {
        let path = StoredPath(name)
        let rows = try node.read(ClusterSQL.selectFile, [.text(path.directory), .text(path.name)])
        return rows.count == 0 ? nil : FileRecord(rows, 0)
    }

    package func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] {
        let path = StoredPath(name)
        let rows = try node.read(
            ClusterSQL.selectFiles, [.text(path.directory), .text(path.name), .integer(Int64(limit))])
        return (0..<rows.count).map { FileRecord(rows, $0) }
    }

    package func sharedUsage(of principal: String?) throws(StoreError) -> [String: Usage] {
        let rows = try node.read(ClusterSQL.selectUsage, [DatabaseValue(principal)])
        var usage: [String: Usage] = [:]
        for row in 0..<rows.count {
            guard let principal = rows.text(row, 0), let uploads = rows.integer(row, 1),
                let reserved = rows.integer(row, 2), let published = rows.integer(row, 3)
            else { continue }
            usage[principal] = Usage(uploads: Int(uploads), reservedBytes: reserved, publishedBytes: published)
        }
        return usage
    }

    package func sizeInBytes() throws(StoreError) -> Int64 { try node.read(ClusterSQL.readSize).integer(0, 0) ?? 0 }

    // MARK: Events

    /// Returns the events that this node delivers, or all events if it is not a server.
    package func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] {
        try entries(
            node.canDeliverEvents
                ? node.deliverableEvents(after: number, limit: Int64(limit))
                : node.read(ClusterSQL.listEvents, [.integer(number), .integer(Int64(limit))]))
    }

    package func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] {
        try entries(readInSession(ClusterSQL.selectRetriedEvents, [.integer(Int64(limit))]))
    }

    private func entries(_ rows: DatabaseRows) throws(StoreError) -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        for row in 0..<rows.count {
            guard let number = rows.integer(row, 0), let content = rows.bytes(row, 1),
                let state = rows.integer(row, 2).flatMap(OutboxEntry.State.init(rawValue:)),
                let event = try? UploadEvent(savedBytes: content)
            else { throw .damaged("an event cannot be read") }
            entries.append(OutboxEntry(number: number, event: event, state: state))
        }
        return entries
    }

    package func hasEvent(_ number: Int64) throws(StoreError) -> Bool {
        try readInSession(ClusterSQL.selectEvent, [.integer(number)]).boolean(0, 0) ?? false
    }

    package var shouldDropEvents: Bool { node.isDelivering }

    package func countEvents() throws(StoreError) -> OutboxStatistics {
        let rows = try node.read(ClusterSQL.countEvents)
        var statistics = OutboxStatistics()
        statistics.waiting = Int(rows.integer(0, 0) ?? 0)
        statistics.setAside = Int(rows.integer(0, 1) ?? 0)
        statistics.oldest = rows.integer(0, 2)
        return statistics
    }

    // MARK: Requirements that apply only to a catalog of one process

    package var savedTotals: CatalogTotals? { CatalogTotals() }
    package func countTotals() throws(StoreError) -> CatalogTotals { CatalogTotals() }
    package func stopCounting() {}
    /// One transaction changes the offset and the pieces, so no server has to compare them. `onward check` compares
    /// them.
    package func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes] { [] }
    package var isVerificationNeeded: Bool { false }
    package func verify() throws(StoreError) {}
    package var damage: StoreError? { nil }
    /// The clock of the database continues while no node runs.
    package func timeMark() throws(StoreError) -> LifetimeClock.Mark? { nil }
}
