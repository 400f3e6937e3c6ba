import SystemCalls

/// The uploads in use, one object for each. The lock is held only to read or change this table.
final class UploadRegistry: Sendable {
    private struct Entry {
        var upload: OpenUpload
        var users: Int
    }

    private struct State {
        var entries: [UploadID: Entry] = [:]
        var isClosed = false
    }

    let context: StoreContext
    let gathering: GatheredAcknowledgments
    private let state = Monitor(State())

    init(_ context: StoreContext) throws(Errno) {
        self.context = context
        gathering = try GatheredAcknowledgments(context)
    }

    /// Begins the use of the upload with this id, for the lifetime of the result.
    func use(_ id: UploadID) throws(StoreError) -> UploadUse {
        let upload = try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            guard let entry = state.entries[id] else {
                let upload = OpenUpload(id, context)
                state.entries[id] = Entry(upload: upload, users: 1)
                return upload
            }
            // No request can find a plain upload.
            if entry.upload.isTransient { throw .notFound }
            state.entries[id]?.users += 1
            return entry.upload
        }
        return UploadUse(of: upload, in: self)
    }

    /// Runs `body` with the upload of this id.
    func withUpload<Result>(
        _ id: UploadID, _ body: (OpenUpload) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let use = try use(id)
        defer { withExtendedLifetime(use) {} }
        return try body(use.upload)
    }

    /// Begins the use of a new upload.
    func use(new upload: OpenUpload) throws(StoreError) -> UploadUse {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            state.entries[upload.id] = Entry(upload: upload, users: 1)
        }
        return UploadUse(of: upload, in: self)
    }

    /// Removes an upload from the table. Later users of the same row get a new object.
    func remove(_ upload: OpenUpload) {
        state.withLock { state in
            if state.entries[upload.id]?.upload === upload { state.entries[upload.id] = nil }
        }
    }

    /// Ends one use of an upload.
    fileprivate func drop(_ upload: OpenUpload) {
        let isLast = state.withLock { state in
            guard var entry = state.entries[upload.id], entry.upload === upload else { return false }
            entry.users -= 1
            state.entries[upload.id] = entry.users == 0 ? nil : entry
            return entry.users == 0
        }
        if isLast { upload.endUse() }
    }

    /// The object of an upload if the upload is in use; nil otherwise. This does not begin a use of the upload.
    func current(_ id: UploadID) -> OpenUpload? {
        state.withLock { state in state.entries[id].flatMap { $0.upload.isTransient ? nil : $0.upload } }
    }

    /// Rejects all later uses and creations. Returns a use of each upload in the table. Each use keeps its upload in
    /// the table while the store closes.
    func close() -> [UploadUse] {
        defer { state.notifyAll() }
        context.newBlobs.close()
        return state.withLock { state in
            state.isClosed = true
            return state.entries.keys.compactMap { id in
                state.entries[id]?.users += 1
                return state.entries[id].map { UploadUse(of: $0.upload, in: self) }
            }
        }
    }

    /// Waits at most this time until the registry is closed, and returns whether it is closed.
    func waitForClosing(nanoseconds: Int64) -> Bool {
        let end = SystemClock.monotonicNanoseconds() + nanoseconds
        return state.wait(until: end) { state -> Void? in state.isClosed ? () : nil } != nil
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    // MARK: Names of files

    /// Runs `body` while the name is locked. If the publication of another upload under this name was decided before,
    /// that publication is completed first.
    func withName<Result>(
        _ name: PublishedName, for id: UploadID? = nil, _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let locks = context.pathLocks
        while true {
            // While this thread has the lock, no other publication under this name runs. So a publication that is
            // decided and not complete was stopped by an error.
            let result = try locks.withLock(name) { () throws(StoreError) -> Result? in
                if let other = locks.unsettled(name), other != id { return nil }
                return try body()
            }
            if let result { return result }
            if let other = locks.unsettled(name), other != id { try settle(other, for: name) }
        }
    }

    /// Completes the interrupted publication of another upload. The caller must hold no lock.
    private func settle(_ id: UploadID, for name: PublishedName) throws(StoreError) {
        do throws(StoreError) {
            try withUpload(id) { (upload) throws(StoreError) in
                let deadline = SystemClock.deadline(in: context.configuration.processingWait)
                // Either this claim or another store has completed the publication.
                if try upload.claim(principal: nil, until: deadline, { _ in () }) != nil {
                    context.pathLocks.clearUnsettled(name, id)
                }
            }
        } catch {
            guard error == .notFound else { throw error }
            context.pathLocks.clearUnsettled(name, id)
        }
    }
}

/// One use of an upload. While it exists, there is no second object for the same upload.
final class UploadUse: Sendable {
    let upload: OpenUpload
    let registry: UploadRegistry

    fileprivate init(of upload: OpenUpload, in registry: UploadRegistry) {
        self.upload = upload
        self.registry = registry
    }

    deinit { registry.drop(upload) }
}

/// One lock for each published name, which is held while the file with that name is evaluated and changed. This object
/// also records for each name the upload whose publication was decided and is not complete.
final class PathLocks: Sendable {
    private struct State {
        var held: Set<PublishedName> = []
        var unsettled: [PublishedName: UploadID] = [:]
    }

    private let state = Monitor(State())

    func withLock<Result>(_ name: PublishedName, _ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        state.waitForever { state in state.held.insert(name).inserted ? () : nil }
        defer {
            state.withLock { _ = $0.held.remove(name) }
            state.notifyAll()
        }
        return try body()
    }

    /// Whether no name is locked.
    var isEmpty: Bool { state.withLock { $0.held.isEmpty } }

    /// The upload whose publication under this name has been decided.
    func unsettled(_ name: PublishedName) -> UploadID? { state.withLock { $0.unsettled[name] } }

    /// Records the upload whose publication under this name has been decided. The name must be locked.
    func setUnsettled(_ name: PublishedName, _ id: UploadID) { state.withLock { $0.unsettled[name] = id } }

    func clearUnsettled(_ name: PublishedName, _ id: UploadID) {
        state.withLock { state in
            if state.unsettled[name] == id { state.unsettled[name] = nil }
        }
    }
}
