import ObjectStorage
import PostgreSQL
import Synchronization
import SystemCalls
import UploadStorage

/// The owner of the object storage.
extension PieceCollector {
    /// The key of the object with the identity of the owner and one of its last marks, or with a candidacy.
    static let identityKey = "cluster"
    /// The key of an object that shows whether the storage supports conditions. It is never deleted: during a check, a
    /// deletion would make the storage seem to support none.
    static let conditionKey = "claim"
    private static let candidacySuffix = "?"
    private static let ownershipPause: Int64 = 1_000_000_000

    private static let claimPending = StoreError.unavailable(
        "the object storage does not support If-None-Match, so the server waits for a minute to find out whether another"
            + " database uses the same prefix")
    private static let otherOwner = StoreError.foreignData(
        "another database uses the bucket with the same prefix; give each database a prefix of its own in --blobs")
    private static let otherCopy = StoreError.foreignData(
        "another copy of this database has used the bucket, and servers of this database would delete objects that the"
            + " other copy needs. Give this database a bucket or a prefix of its own in --blobs. If this database has to"
            + " replace the other copy, for example because the other copy is lost, stop all servers of both, delete the"
            + " object '\(identityKey)' below the prefix, and start the servers of this database: they delete the objects"
            + " that this database does not name")

    /// The marks in the database and in the object storage.
    private struct Marks {
        var identity: String
        /// The number of the mark in the object; nil if the database does not know the mark.
        var found: Int64?
        /// The number of the last mark in the database.
        var last: Int64
        /// The content of the object with the last mark.
        var content: [UInt8]
    }

    // MARK: Checks

    /// Calls ``requireOwnStorage()`` until it has succeeded once.
    /// - Parameter deadline: monotonic nanoseconds. Until then this call waits for the end of the claim of this
    ///   database.
    func requireOwnStorageOnce(until deadline: Int64 = 0) throws(StoreError) {
        if isOwn.load(ordering: .relaxed) { return }
        while try claimedMarks() == nil {
            let next = SystemClock.monotonicNanoseconds() + Self.ownershipPause
            if next >= deadline || isStopped.wait(until: next, { $0 ? true : nil }) == true { throw Self.claimPending }
        }
        isOwn.store(true, ordering: .relaxed)
    }

    /// Verifies that the object storage belongs to this database, and not to another one, whose objects would seem to
    /// be orphans. This database becomes the owner of an object storage that has none.
    package func requireOwnStorage() throws(StoreError) { if try claimedMarks() == nil { throw Self.claimPending } }

    /// Verifies that the object storage does not belong to a database with another identity, and changes nothing. The
    /// storage of a copy is accepted, so that a restored dump can be checked.
    package func requireNoOtherOwner() throws(StoreError) {
        guard let owner = try readOwner() else { return }
        let identity = try marks(owner).identity
        let text = owner.identity
        if text != identity, text != identity + Self.candidacySuffix { throw Self.otherOwner }
    }

    /// Changes the mark of the owner if it is time for this: see ``MarkRenewal``.
    /// - Returns: whether objects may be deleted now; false if the object was read too long ago.
    func renewMark() throws(StoreError) -> Bool {
        let deadline = SystemClock.deadline(in: settings.claimTime)
        guard var marks = try claimedMarks(), let found = marks.found else { throw Self.claimPending }
        var step = nextStep(found, marks.last)
        if step == .add {
            _ = try run(ClusterSQL.addMark, [.integer(marks.last + 1)])
            marks = try self.marks(nil)
            step = nextStep(found, marks.last)
        }
        if step == .store {
            try storing(Self.identityKey) { [marks] () throws(ObjectError) in
                try objects.put(Self.identityKey, marks.content, until: deadline)
            }
            _ = nextStep(marks.last, marks.last)
        }
        let now = SystemClock.monotonicNanoseconds()
        return now < deadline && renewal.withLock { $0.allowsDeletion(at: now) }
    }

    private func nextStep(_ found: Int64, _ last: Int64) -> MarkRenewal.Step {
        renewal.withLock { $0.found(found, last: last, at: SystemClock.monotonicNanoseconds()) }
    }

    // MARK: The claim

    /// Returns the marks if the object storage belongs to this database, and nil if this database is a candidate;
    /// throws if the storage belongs to another database, or to a copy of this one.
    ///
    /// If the storage supports conditions, the first database creates the object ``identityKey``. Otherwise another
    /// database that has found no object can replace it until ``Settings/claimTime`` after its search. So the first
    /// content is not a mark but a *candidacy*. If it is still there after ``MarkRenewal/Times/confirmation``, no other
    /// database can replace it any more: everyone who could have found no object has stored another candidacy before,
    /// or finds this one. A list of claims would not help, because a list of such a storage can lack new objects.
    private func claimedMarks() throws(StoreError) -> Marks? {
        var readAt = SystemClock.monotonicNanoseconds()
        var owner = try readOwner()
        if owner == nil {
            renewal.withLock { $0.foundNone() }
            try claim()
            readAt = SystemClock.monotonicNanoseconds()
            owner = try readOwner()
        }
        guard let owner else { throw .unavailable("the object \(Self.identityKey) cannot be found yet") }
        // The database is read afterwards: it had the mark before the object.
        var marks = try self.marks(owner)
        if owner.identity == marks.identity, marks.found != nil {
            candidateSince.withLock { $0 = nil }
            return marks
        }
        guard owner.identity == marks.identity + Self.candidacySuffix else {
            candidateSince.withLock { $0 = nil }
            renewal.withLock { $0.foundNone() }
            isOwn.store(false, ordering: .relaxed)
            throw owner.identity == marks.identity ? Self.otherCopy : Self.otherOwner
        }
        let since = candidateSince.withLock { since in
            since = since ?? SystemClock.monotonicNanoseconds()
            return since ?? 0
        }
        guard readAt - since >= settings.renewal.confirmation else { return nil }
        try storing(Self.identityKey) { [marks] () throws(ObjectError) in
            try objects.put(Self.identityKey, marks.content)
        }
        marks.found = marks.last
        return marks
    }

    /// Makes this database the owner of an object storage that has none, or a candidate.
    private func claim() throws(StoreError) {
        try requireKnownObject()
        let isConditional = try storing(Self.conditionKey) { () throws(ObjectError) in
            // Only a storage that supports conditions refuses to create an object that exists.
            if try !objects.create(Self.conditionKey, [], until: .max) { return true }
            return try !objects.create(Self.conditionKey, [], until: .max)
        }
        let deadline = SystemClock.deadline(in: settings.claimTime)
        guard try readOwner() == nil else { return }
        let marks = try self.marks(nil)
        let content = isConditional ? marks.content : Array((marks.identity + Self.candidacySuffix).utf8)
        _ = try storing(Self.identityKey) { () throws(ObjectError) in
            try objects.create(Self.identityKey, content, until: deadline)
        }
    }

    /// If this database names objects, for example after a backup was restored, requires that the storage has one of
    /// them. Otherwise a server with a wrong prefix would store objects where the other servers do not find them.
    private func requireKnownObject() throws(StoreError) {
        let rows = try run(ClusterSQL.someObjects, [])
        if rows.count == 0 { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { buffer.deallocate() }
        // The storage may have lost some of them since the backup was made.
        for object in (0..<rows.count).compactMap({ rows.text($0, 0) }) {
            do throws(ObjectError) {
                _ = try objects.get(object, 0..<1, into: buffer)
                return
            } catch { if error != .notFound { throw StoreError(error, during: "read the object \(object)") } }
        }
        throw .foreignData("the bucket lacks the objects of this database; check the bucket and the prefix in --blobs")
    }

    private func storing<Result>(
        _ key: String, _ body: () throws(ObjectError) -> Result
    ) throws(StoreError) -> Result {
        do throws(ObjectError) { return try body() } catch {
            throw StoreError(error, during: "store the object \(key)")
        }
    }

    // MARK: Reads

    /// The content of the object ``identityKey``: the identity and, after a space, the mark.
    private struct Owner {
        var identity: String
        var mark: String

        init(_ content: some Sequence<UInt8>) {
            let parts = String(decoding: Array(content), as: UTF8.self).split(
                separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            (identity, mark) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
    }

    /// Reads the object ``identityKey``; `nil` if it does not exist.
    private func readOwner() throws(StoreError) -> Owner? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 128, alignment: 1)
        defer { buffer.deallocate() }
        do throws(ObjectError) {
            return Owner(buffer.prefix(try objects.get(Self.identityKey, 0..<128, into: buffer)))
        } catch {
            // Some storages create the bucket when they store its first object. The others refuse to store it.
            if error == .notFound || error.isMissingBucket { return nil }
            throw StoreError(error, during: "read the object \(Self.identityKey)")
        }
    }

    private func marks(_ owner: Owner?) throws(StoreError) -> Marks {
        let rows = try run(ClusterSQL.marks, [.text(owner?.mark ?? "")])
        guard let identity = rows.text(0, 0), let last = rows.integer(0, 2), let mark = rows.text(0, 3) else {
            throw .damaged("the database has no identity")
        }
        return Marks(
            identity: identity, found: rows.integer(0, 1), last: last, content: Array("\(identity) \(mark)".utf8))
    }
}
