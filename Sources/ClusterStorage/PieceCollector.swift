import ObjectStorage
import PostgreSQL
import Synchronization
import SystemCalls
import UploadStorage

/// Removes the objects and pieces that no upload, published file or retained request needs. Each node has a collector;
/// they divide the work.
///
/// The collector deletes only objects that no row names, and that no row can name later:
///
/// - *Garbage* is written by the transaction that removes the last row with the object, or by a transaction of the server
///   that has stored the object, if it sends the name to no transaction any more (``PieceLedger/takeUnneeded()``). Later
///   transactions that name it are rejected (`put_pieces`). The grace period is for downloads, which continue to use the
///   rows that they have read.
/// - *Orphans* are objects that no row has ever named, for example because a server was killed before it recorded them.
///   One query finds objects that neither a piece nor the garbage names, and whose session has no row. No transaction can
///   name such an object later: before a transaction names a new object, it locks the row of the session that has stored
///   the object, and fails if there is none (`put_pieces`). A row of a session is removed only when nothing locks it. So
///   all transactions that named objects of the session have ended, and the query sees their pieces. An object that was
///   named once stays in a piece or in the garbage until it is deleted. Sessions never get the same number again. Objects
///   with other names are not touched.
/// - *Pieces* of a blob are dropped if no unfinished upload, file or retained request has the blob. Nothing needs them
///   later: no other upload gets the blob, and a file or a retained request gets it only while its upload is unfinished, or
///   in the transaction that records the pieces.
///
/// All this is true only if the servers of one database use the object storage. ``MarkRenewal`` prevents the servers of
/// a copy of the database from deleting objects, too.
package final class PieceCollector: Sendable {
    package struct Settings: Sendable {
        /// The time from the removal of a file to the deletion of its objects, so that downloads on all nodes end first.
        package var gracePeriod: Duration = .seconds(86_400)
        /// The time between two checks for garbage.
        package var interval: Duration = .seconds(60)
        /// The time between two searches through all objects and pieces.
        package var searchInterval: Duration = .seconds(86_400)
        /// The number of objects or blobs in a transaction, at most 1000.
        package var batchSize = 1000
        /// The time from a search for the owner of the storage to the end of a request that changes it.
        package var claimTime: Duration = .seconds(20)
        /// The time after which a candidate becomes the owner, if the storage supports no conditions, and the times for the
        /// marks of the owner. ``MarkRenewal/Times/confirmation`` is longer than ``claimTime``, so that requests that arrive
        /// late do not matter.
        package var renewal = MarkRenewal.Times()

        package init() {}
    }

    /// The numbers of objects that a collector has removed.
    package struct Report: Sendable, Hashable {
        /// Objects of replaced or removed bytes.
        package var garbage = 0
        /// Objects that no row has named.
        package var orphans = 0

        package init() {}
    }

    /// The time after which another node repeats a page that this node has claimed, in milliseconds.
    private static let claimMilliseconds: Int64 = 600_000

    let database: Database
    let objects: any ObjectStore
    let settings: Settings
    private let clock: @Sendable () -> ClockReading
    let isStopped = Monitor(false)
    let isOwn = Atomic(false)
    /// The time at which this process first found that its database is a candidate, in monotonic nanoseconds.
    let candidateSince = Monitor<Int64?>(nil)
    let renewal: Monitor<MarkRenewal>
    private let thread = Monitor<WorkerThread?>(nil)
    private let progress = Monitor(SharedStorageStatistics.Collection())

    /// - Parameter clock: the clock of the database, as its node knows it.
    package init(
        database: Database, objects: any ObjectStore, settings: Settings = Settings(),
        clock: @escaping @Sendable () -> ClockReading = SystemClock.reading
    ) {
        self.database = database
        self.objects = objects
        self.settings = settings
        self.clock = clock
        renewal = Monitor(MarkRenewal(times: settings.renewal))
    }

    /// Collects on a thread of its own, until ``close()``.
    /// - Parameter onFailure: is called if objects or pieces could not be removed. The collector tries again later.
    package func start(onFailure: @escaping @Sendable (StoreError) -> Void) throws(StoreError) {
        do throws(Errno) {
            let thread = try WorkerThread(name: "collect", shouldYield: true) { [self] in
                repeat {
                    var hasFailed = false
                    do throws(StoreError) { _ = try collect() } catch {
                        hasFailed = true
                        onFailure(error)
                    }
                    progress.withLock { [hasFailed] progress in
                        progress.runs += 1
                        progress.failedRuns += hasFailed ? 1 : 0
                    }
                } while !wait()
            }
            self.thread.withLock { $0 = thread }
        } catch { throw .cannotStartThread(error) }
    }

    package func close() {
        isStopped.withLock { $0 = true }
        isStopped.notifyAll()
        thread.withLock { $0.take() }?.join()
    }

    /// - Returns: whether the collector was closed.
    private func wait() -> Bool {
        isStopped.wait(until: SystemClock.deadline(in: settings.interval)) { $0 ? true : nil } ?? false
    }

    /// Removes everything that is due.
    package func collect() throws(StoreError) -> Report {
        var report = Report()
        // The mark is renewed first, so that it changes even if something below fails each time.
        _ = try renewMark()
        while try collectPieces(), !isClosed { _ = try renewMark() }
        while try renewMark() {
            let count = try collectGarbage()
            report.garbage += count
            if count == 0 || isClosed { break }
        }
        while try collectOrphans(&report), !isClosed {}
        return report
    }

    /// The numbers for metrics: the objects in the database that wait for their deletion, and the objects that this
    /// collector has deleted.
    /// - Parameter canReadDatabase: pass false if the database cannot be reached; then only the numbers of deleted
    ///   objects are returned.
    func statistics(canReadDatabase: Bool) -> SharedStorageStatistics.Collection {
        var statistics = progress.withLock { $0 }
        guard canReadDatabase, let rows = try? run(ClusterSQL.collectionState, []), rows.count > 0 else {
            return statistics
        }
        statistics.garbage = rows.integer(0, 0).map { Int($0) }
        statistics.oldestGarbage = rows.integer(0, 1)
        for row in 0..<rows.count {
            if let search = rows.text(row, 2) { statistics.overdue[search] = rows.integer(row, 3) ?? 0 }
        }
        return statistics
    }

    private var isClosed: Bool { isStopped.withLock { $0 } }

    // MARK: Garbage

    private func collectGarbage() throws(StoreError) -> Int {
        // The statement does not read the clock itself: it may have been set since the node has read it.
        let reading = clock()
        if reading.boot < reading.doubtfulUntil { return 0 }
        let limit = reading.wall / 1000 - settings.gracePeriod.milliseconds * 1000
        let rows = try run(ClusterSQL.claimGarbage, [.integer(limit), .integer(Int64(settings.batchSize))])
        let garbage = (0..<rows.count).compactMap { rows.text($0, 0) }
        try delete(garbage)
        if !garbage.isEmpty { _ = try run(ClusterSQL.removeGarbage, [.texts(garbage)]) }
        progress.withLock { $0.deletedGarbage += garbage.count }
        return garbage.count
    }

    // MARK: Searches

    /// - Returns: whether another page follows.
    private func collectPieces() throws(StoreError) -> Bool {
        guard let position = try claimPage("pieces") else { return false }
        let rows = try run(ClusterSQL.blobs, [.text(position), .integer(Int64(settings.batchSize))])
        for row in 0..<rows.count where rows.boolean(row, 1) == true {
            // After an interruption the blob still has its first pieces, so it is found again.
            while try dropPieces(of: rows.text(row, 0) ?? "") {
                if isClosed { return false }
                _ = try renewMark()
            }
            if isClosed { return false }
        }
        return try endPage("pieces", next: rows.count < settings.batchSize ? nil : rows.text(rows.count - 1, 0))
    }

    /// Drops the last pieces of a blob. If that fails, the next page begins after the blob, so that other blobs do not wait
    /// for it. The next search finds it again.
    /// - Returns: whether the blob has other pieces.
    private func dropPieces(of blob: String) throws(StoreError) -> Bool {
        do throws(StoreError) { return try run(ClusterSQL.dropPieces, [.text(blob)]).boolean(0, 0) == true } catch {
            _ = try? endPage("pieces", next: blob)
            throw error
        }
    }

    /// - Returns: whether another page follows.
    private func collectOrphans(_ report: inout Report) throws(StoreError) -> Bool {
        guard try renewMark(), let position = try claimPage("objects") else { return false }
        let listed: [ObjectListing]
        do throws(ObjectError) {
            listed = try objects.list(
                prefix: "data/", after: position.isEmpty ? nil : position, limit: settings.batchSize)
        } catch { throw StoreError(error, during: "list objects") }
        let rows = try run(ClusterSQL.orphans, [.texts(listed.map(\.key))])
        var orphans = (0..<rows.count).compactMap { rows.text($0, 0) }
        let isLast = listed.count < settings.batchSize
        if isLast { orphans += try endedProbes() }
        try delete(orphans)
        report.orphans += orphans.count
        progress.withLock { [orphans] in $0.deletedOrphans += orphans.count }
        return try endPage("objects", next: isLast ? nil : listed.last?.key)
    }

    /// The objects that servers have not deleted because they ended during a check of the storage.
    private func endedProbes() throws(StoreError) -> [String] {
        let listed: [ObjectListing]
        do throws(ObjectError) {
            listed = try objects.list(prefix: "probe/", after: nil, limit: settings.batchSize)
        } catch { throw StoreError(error, during: "list objects") }
        let sessions = listed.compactMap { Int64($0.key.dropFirst("probe/".count)) }
        if sessions.isEmpty { return [] }
        let rows = try run(ClusterSQL.endedSessions, [.integers(sessions)])
        return (0..<rows.count).compactMap { rows.integer($0, 0).map { "probe/\($0)" } }
    }

    // MARK: Statements

    private func claimPage(_ search: String) throws(StoreError) -> String? {
        let rows = try run(ClusterSQL.claimPage, [.text(search), .integer(Self.claimMilliseconds)])
        return rows.count > 0 ? rows.text(0, 0) : nil
    }

    private func endPage(_ search: String, next: String?) throws(StoreError) -> Bool {
        let pause = next == nil ? settings.searchInterval.milliseconds : 0
        _ = try run(ClusterSQL.endPage, [.text(search), .text(next ?? ""), .integer(pause)])
        return next != nil
    }

    private func delete(_ keys: [String]) throws(StoreError) {
        if keys.isEmpty { return }
        do throws(ObjectError) { try objects.delete(keys) } catch {
            throw StoreError(error, during: "delete objects")
        }
    }

    func run(_ sql: String, _ parameters: [DatabaseValue]) throws(StoreError) -> DatabaseRows {
        do throws(DatabaseError) { return try database.run(DatabaseStatement(sql, parameters)) } catch {
            throw error.fileError(during: "collect garbage")
        }
    }
}

extension Duration {
    var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
