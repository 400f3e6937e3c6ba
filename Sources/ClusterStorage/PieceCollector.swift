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
        /// The time from a search for the owner of the storage to the end of a request that makes another one.
        package var claimTime: Duration = .seconds(20)
        /// The time after which a candidate becomes the owner, if the storage knows no conditions. It is longer than
        /// ``claimTime``, so that requests that arrive late do not matter.
        package var confirmationTime: Duration = .seconds(60)

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
    /// The key of an object that shows whether the storage knows conditions. It is never deleted: then it would not.
    static let conditionKey = "claim"
    private static let candidacySuffix = Array("?".utf8)
    /// The time after which another node repeats a page that this node has claimed, in milliseconds.
    private static let claimMilliseconds: Int64 = 600_000

    private let database: Database
    private let objects: any ObjectStore
    private let settings: Settings
    private let clock: @Sendable () -> ClockReading
    private let isStopped = Monitor(false)
    private let isOwn = Atomic(false)
    /// The time at which this process has first found that its database is a candidate, in monotonic nanoseconds.
    private let candidateSince = Monitor<Int64?>(nil)
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
    /// - Parameter canReadDatabase: pass false if the database cannot be reached; then only the latter are returned.
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
            // After an interruption the blob has the first pieces, and is found again.
            while try run(ClusterSQL.dropPieces, [rows[row, 0]]).integer(0, 0) == Int64(ClusterSQL.maxDropped) {
                if isClosed { return false }
            }
            if isClosed { return false }
        }
        return try endPage("pieces", next: rows.count < settings.batchSize ? nil : rows.text(rows.count - 1, 0))
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

    // MARK: The owner of the storage

    /// Calls ``requireOwnStorage(claims:)`` until it has succeeded once.
    /// - Parameter deadline: monotonic nanoseconds. Until then this call waits for the end of the claim of this database.
    func requireOwnStorageOnce(until deadline: Int64 = 0) throws(StoreError) {
        if isOwn.load(ordering: .relaxed) { return }
        while try !ownsStorage(claims: true) {
            let next = SystemClock.monotonicNanoseconds() + Self.ownershipPause
            if next >= deadline || isStopped.wait(until: next, { $0 ? true : nil }) == true { throw Self.claimPending }
        }
        isOwn.store(true, ordering: .relaxed)
    }

    /// Verifies that the object storage belongs to this database, and not to another one, whose objects would seem to be
    /// orphans.
    /// - Parameter claims: whether this database becomes the owner of an object storage that has none.
    package func requireOwnStorage(claims shouldClaim: Bool = true) throws(StoreError) {
        if try !ownsStorage(claims: shouldClaim), shouldClaim { throw Self.claimPending }
    }

    private static let ownershipPause: Int64 = 1_000_000_000
    private static let claimPending = StoreError.unavailable(
        "the object storage does not support If-None-Match, so this database uses it only after a minute in which no other"
            + " one has claimed it")

    /// Returns whether the object storage belongs to this database; throws if it belongs to another one.
    ///
    /// The object ``identityKey`` has the identity of the owner. If the storage knows conditions, the first database
    /// creates it. Otherwise another database that has found no object can replace it until ``Settings/claimTime`` after its
    /// search. So the first content is not the identity but a *candidacy*. If it is still there after
    /// ``Settings/confirmationTime``, nothing can replace it any more: everyone who could have found no object has stored
    /// another candidacy before, or finds this one. A list of claims would not help, because a list of such a storage
    /// can lack new objects.
    private func ownsStorage(claims shouldClaim: Bool) throws(StoreError) -> Bool {
        guard let identity = try run(ClusterSQL.identity, []).text(0, 0).map({ Array($0.utf8) }) else {
            throw .damaged("the database has no identity")
        }
        let candidacy = identity + Self.candidacySuffix
        if try readOwner() == nil {
            guard shouldClaim else { return false }
            try claim(as: identity, candidacy)
        }
        let readAt = SystemClock.monotonicNanoseconds()
        guard let owner = try readOwner() else {
            throw .unavailable("the object \(Self.identityKey) cannot be found yet")
        }
        if owner == identity { return true }
        guard owner == candidacy else {
            candidateSince.withLock { $0 = nil }
            isOwn.store(false, ordering: .relaxed)
            throw .foreignData(
                "another database uses the bucket with the same prefix; give each database a prefix of its own in --blobs"
            )
        }
        let since = candidateSince.withLock { since in
            since = since ?? SystemClock.monotonicNanoseconds()
            return since ?? 0
        }
        guard shouldClaim, readAt - since >= settings.confirmationTime.nanoseconds else { return false }
        try storing(Self.identityKey) { () throws(ObjectError) in try objects.put(Self.identityKey, identity) }
        return true
    }

    /// Makes this database the owner of an object storage that has none, or a candidate.
    private func claim(as identity: [UInt8], _ candidacy: [UInt8]) throws(StoreError) {
        try requireKnownObject()
        let isConditional = try storing(Self.conditionKey) { () throws(ObjectError) in
            // Only a storage that knows conditions refuses to create an object that exists.
            if try !objects.create(Self.conditionKey, [], until: .max) { return true }
            return try !objects.create(Self.conditionKey, [], until: .max)
        }
        let deadline = SystemClock.deadline(in: settings.claimTime)
        guard try readOwner() == nil else { return }
        _ = try storing(Self.identityKey) { () throws(ObjectError) in
            try objects.create(Self.identityKey, isConditional ? identity : candidacy, until: deadline)
        }
    }

    /// Requires that the storage has an object that this database names, if it names any, as in a restored backup. Otherwise
    /// a server with a wrong prefix would store objects where the other servers do not find them.
    private func requireKnownObject() throws(StoreError) {
        guard let object = try run(ClusterSQL.someObject, []).text(0, 0) else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { buffer.deallocate() }
        do throws(ObjectError) { _ = try objects.get(object, 0..<1, into: buffer) } catch {
            guard error == .notFound else { throw StoreError(error, during: "read the object \(object)") }
            throw .foreignData(
                "the bucket lacks the objects of this database; check the bucket and the prefix in --blobs")
        }
    }

    private func storing<Result>(
        _ key: String, _ body: () throws(ObjectError) -> Result
    ) throws(StoreError) -> Result {
        do throws(ObjectError) { return try body() } catch {
            throw StoreError(error, during: "store the object \(key)")
        }
    }

    /// The content of the object that identifies the database; `nil` if there is none.
    private func readOwner() throws(StoreError) -> [UInt8]? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        do throws(ObjectError) {
            return Array(buffer.prefix(try objects.get(Self.identityKey, 0..<64, into: buffer)))
        } catch {
            // Some storages create the bucket when they store its first object. The others refuse to store it.
            if error == .notFound || error.isMissingBucket { return nil }
            throw StoreError(error, during: "read the object \(Self.identityKey)")
        }
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
