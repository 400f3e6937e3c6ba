import ObjectStorage
import PostgreSQL
import Synchronization
import SystemCalls
import UploadStorage

/// Removes what no upload, published file or retained request needs. Each node has a collector; they divide the work.
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

    /// The key of the object that identifies the database.
    static let identityKey = "cluster"
    /// The time after which another node repeats a page that this node has claimed, in milliseconds.
    private static let claimMilliseconds: Int64 = 600_000

    private let database: Database
    private let objects: any ObjectStore
    private let settings: Settings
    private let isStopped = Monitor(false)
    private let isOwn = Atomic(false)
    private let thread = Monitor<WorkerThread?>(nil)
    private let progress = Monitor(SharedStorageStatistics.Collection())

    package init(database: Database, objects: any ObjectStore, settings: Settings = Settings()) {
        self.database = database
        self.objects = objects
        self.settings = settings
    }

    /// Collects on a thread of its own, until ``close()``.
    /// - Parameter onFailure: is called if objects or pieces could not be removed. The collector tries again later.
    package func start(onFailure: @escaping @Sendable (StoreError) -> Void) throws(StoreError) {
        do throws(Errno) {
            let thread = try WorkerThread(name: "collect", yieldsToOthers: true) { [self] in
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
        while try collectPieces(), !isClosed {}
        while true {
            let count = try collectGarbage()
            report.garbage += count
            if count == 0 || isClosed { break }
        }
        while try collectOrphans(&report), !isClosed {}
        return report
    }

    /// The numbers for metrics: what waits for its deletion in the database, and what this collector has deleted.
    /// - Parameter readsDatabase: pass false if the database cannot be reached; then only the latter are returned.
    func statistics(readsDatabase: Bool) -> SharedStorageStatistics.Collection {
        var statistics = progress.withLock { $0 }
        guard readsDatabase, let rows = try? run(ClusterSQL.collectionState, []), rows.count > 0 else {
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
        let rows = try run(
            ClusterSQL.claimGarbage, [.integer(settings.gracePeriod.milliseconds), .integer(Int64(settings.batchSize))])
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
        let blobs = (0..<rows.count).compactMap { rows.text($0, 0) }
        if !blobs.isEmpty { _ = try run(ClusterSQL.dropPiecesOfMany, [.texts(blobs)]) }
        return try endPage("pieces", next: blobs.count < settings.batchSize ? nil : blobs.last)
    }

    /// - Returns: whether another page follows.
    private func collectOrphans(_ report: inout Report) throws(StoreError) -> Bool {
        try requireOwnStorage()
        guard let position = try claimPage("objects") else { return false }
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

    /// Calls ``requireOwnStorage(claims:)`` until it has succeeded once.
    func requireOwnStorageOnce() throws(StoreError) {
        if isOwn.load(ordering: .relaxed) { return }
        try requireOwnStorage()
        isOwn.store(true, ordering: .relaxed)
    }

    /// Verifies that the object storage belongs to this database, and not to another one, whose objects would seem to be
    /// orphans.
    /// - Parameter claims: whether this database becomes the owner of an object storage that has none.
    package func requireOwnStorage(claims: Bool = true) throws(StoreError) {
        guard let identity = try run(ClusterSQL.identity, []).text(0, 0) else {
            throw .damaged("the database has no identity")
        }
        var owner = try readIdentity()
        if owner == nil {
            guard claims else { return }
            // Another database can do the same now. If the storage knows no conditions, both can seem to have succeeded,
            // until the first one reads the object again.
            do throws(ObjectError) { try objects.create(Self.identityKey, Array(identity.utf8)) } catch {
                throw StoreError(error, during: "store the object \(Self.identityKey)")
            }
            owner = try readIdentity()
        }
        guard let owner else { throw .unavailable("the object \(Self.identityKey) cannot be found yet") }
        if owner != Array(identity.utf8) {
            isOwn.store(false, ordering: .relaxed)
            throw .foreignData(
                "another database uses the bucket with the same prefix; give each database a prefix of its own in --blobs"
            )
        }
    }

    /// The content of the object that identifies the database; `nil` if there is none.
    private func readIdentity() throws(StoreError) -> [UInt8]? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        do throws(ObjectError) {
            return Array(buffer.prefix(try objects.get(Self.identityKey, 0..<64, into: buffer)))
        } catch {
            if error == .notFound { return nil }
            throw StoreError(error, during: "read the object \(Self.identityKey)")
        }
    }

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

    private func run(_ sql: String, _ parameters: [DatabaseValue]) throws(StoreError) -> DatabaseRows {
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
