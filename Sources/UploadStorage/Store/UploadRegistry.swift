import SystemCalls

/// The uploads in use, one object each, and the names of bytes that no row knows yet. An outer lock: held for nothing but
/// the table itself.
final class UploadRegistry: Sendable {
    private struct Entry {
        var upload: OpenUpload
        var users: Int
    }

    private struct State {
        var entries: [UploadID: Entry] = [:]
        var newBlobs: Set<String> = []
        var isClosed = false
    }

    private let state = Monitor(State())

    /// The object of an upload, made if it is not in use, to be given back with ``drop(_:)``.
    func retain(_ id: UploadID, _ make: () -> OpenUpload) throws(StoreError) -> OpenUpload {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            if let entry = state.entries[id] {
                // Bytes without a row are found by nobody.
                if entry.upload.isTransient { throw .notFound }
                state.entries[id]?.users += 1
                return entry.upload
            }
            let upload = make()
            state.entries[id] = Entry(upload: upload, users: 1)
            return upload
        }
    }

    /// Adds a new upload for its first user.
    func insert(_ upload: OpenUpload) throws(StoreError) {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            state.entries[upload.id] = Entry(upload: upload, users: 1)
        }
    }

    /// One more user of an upload that is in use.
    func retain(_ upload: OpenUpload) {
        state.withLock { $0.entries[upload.id]?.users += 1 }
    }

    /// Takes an upload away from its users, who may still drop it: its row gets an object of its own.
    func remove(_ upload: OpenUpload) {
        state.withLock { state in
            if state.entries[upload.id]?.upload === upload { state.entries[upload.id] = nil }
        }
    }

    func drop(_ upload: OpenUpload) {
        let isLast = state.withLock { state in
            guard var entry = state.entries[upload.id], entry.upload === upload else { return false }
            entry.users -= 1
            state.entries[upload.id] = entry.users == 0 ? nil : entry
            return entry.users == 0
        }
        if isLast { upload.returnSurplus() }
    }

    /// The object of an upload that is in use, without using it.
    func current(_ id: UploadID) -> OpenUpload? {
        state.withLock { state in state.entries[id].flatMap { $0.upload.isTransient ? nil : $0.upload } }
    }

    /// Announces bytes of which no row knows yet.
    func addNewBlob(_ name: String) throws(StoreError) {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            state.newBlobs.insert(name)
        }
    }

    func removeNewBlob(_ name: String) { state.withLock { _ = $0.newBlobs.remove(name) } }

    func isNewBlob(_ name: String) -> Bool { state.withLock { $0.newBlobs.contains(name) } }

    /// Refuses further use and gives what is in use, and whether that is all: no upload is just being created.
    func close() -> (uploads: [OpenUpload], isComplete: Bool) {
        defer { state.notifyAll() }
        return state.withLock { state in
            state.isClosed = true
            return (state.entries.values.map(\.upload), state.newBlobs.isEmpty)
        }
    }

    /// Whether the registry is closed within this time.
    func waitForClosing(nanoseconds: Int64) -> Bool {
        let end = SystemClock.monotonicNanoseconds() + nanoseconds
        return state.wait(until: end) { state -> Void? in state.isClosed ? () : nil } != nil
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
}
