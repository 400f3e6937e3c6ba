import HTTPSemantics
import SystemCalls
import UploadStorage

/// The bytes of one upload, stored as pieces.
///
/// Bytes are written one after the other. They are collected in a segment in memory. Other threads store full segments
/// as objects while the next is filled; ``synchronize(including:)`` stores the last segment, and registers the new pieces
/// with the ``PieceLedger``.
final class ObjectBlob: Blob {
    /// Bytes in memory. Only the last segment can grow.
    struct Segment {
        let id: Int
        let start: Int64
        var bytes: [UInt8]
        /// The number of bytes of memory that the budget has reserved for this segment.
        var reserved: Int
        var phase = Phase.filling

        enum Phase {
            case filling
            /// A thread stores the bytes now, or will store them soon.
            case storing
            case stored(Piece)
        }

        var end: Int64 { start + Int64(bytes.count) }
        var isFilling: Bool {
            if case .filling = phase { true } else { false }
        }
    }

    struct State {
        /// The first bytes, if `pieces` does not list their pieces. In this case `pieces` is not empty.
        var earlier: RecordedPieces?
        /// The pieces after `earlier`.
        var pieces: [Piece]
        /// The bytes after `pieces`.
        var segments: [Segment] = []
        /// A copy of the last bytes in `pieces`.
        var copy: Segment?
        /// The offset from which `pieces` differ from what is registered; `nil` if they are the same.
        var changedFrom: Int64?
        /// The stored objects that are not registered.
        var unregistered: Set<String> = []
        var modified = SystemClock.realtimeNanoseconds()
        /// The error of a failed attempt to store bytes. The blob rejects all later writes.
        var failure: Errno?
        var isSynchronizing = false
        var lastSegmentID = 0

        var size: Int64 { segments.last?.end ?? pieces.end }

        /// Replaces the list of pieces by the last pieces of the blob. The database has all pieces before them.
        mutating func list(_ pieces: [Piece], of name: String, in storage: PieceStorage) {
            let start = pieces.first?.start ?? 0
            earlier = start > 0 ? RecordedPieces(of: name, size: start, storage: storage) : nil
            self.pieces = pieces
        }

        /// The number of segments in memory that other threads store or have stored. A stored segment remains in memory
        /// until all segments before it are stored.
        var storing: Int { segments.count - (segments.last?.isFilling ?? false ? 1 : 0) }
    }

    /// The number of segments that are stored at the same time while the next is filled.
    private static let maxStoring = 2

    let name: String
    let storage: PieceStorage
    let state: Monitor<State>
    let reader: ObjectReader

    /// - Parameters:
    ///   - pieces: a list of the last pieces in the database.
    ///   - isNew: true if all pieces that the database may contain are replaced. Then the list is empty.
    init(_ name: String, _ pieces: [Piece] = [], isNew: Bool, in storage: PieceStorage) {
        self.name = name
        self.storage = storage
        var first = State(pieces: [], changedFrom: isNew ? 0 : nil)
        first.list(pieces, of: name, in: storage)
        state = Monitor(first)
        reader = ObjectReader(storage)
        storage.discard(storage.ledger.add(self))
        storage.budget.add(self)
    }

    deinit {
        let owner = ObjectIdentifier(self)
        storage.budget.remove(owner)
        let unregistered = state.withLock { state in
            releaseMemory(&state)
            return state.unregistered
        }
        storage.discard(storage.ledger.remove(name, of: owner) + unregistered)
    }

    private func releaseMemory(_ state: inout State) {
        storage.budget.release(state.segments.reduce(0) { $0 + $1.reserved }, from: .unstored)
        storage.budget.release(state.copy?.reserved ?? 0, from: .copy)
        (state.segments, state.copy) = ([], nil)
    }

    // MARK: Writing

    private var limits: PieceLimits { storage.limits }

    private func isFull(_ segment: Segment) -> Bool { segment.bytes.count >= limits.maxSize }

    private enum WriteStep {
        case written(Int)
        /// Other segments have to be stored first.
        case wait
        /// The pieces before the offset have to be listed first.
        case list
        /// The last segment needs more memory.
        case grow(Int, by: Int)
        /// A segment is needed.
        case begin(Int)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        while true {
            let step = try state.withLock { (state) throws(Errno) -> WriteStep in
                if let failure = state.failure { throw failure }
                if offset < state.size, !truncate(to: offset, &state) { return .list }
                guard offset == state.size else { throw .invalidArgument }
                return self.step(writing: bytes, &state)
            }
            switch step {
            case .written(let count): return count
            case .wait: return 0
            case .list: try truncateListing(to: offset)
            case .grow(let id, let count): if !grow(id, by: count) { return 0 }
            case .begin(let count): if !begin(count) { return 0 }
            }
        }
    }

    private func step(writing bytes: UnsafeRawBufferPointer, _ state: inout State) -> WriteStep {
        if let last = state.segments.last, isFull(last), last.isFilling {
            if state.storing >= Self.maxStoring { return .wait }
            startStoring(&state)
        }
        let index = state.segments.count - 1
        guard index >= 0, state.segments[index].isFilling else {
            let isStreaming = state.segments.last.map(isFull) ?? (state.pieces.last?.size == limits.maxSize)
            return .begin(isStreaming ? limits.maxSize : limits.minMemory)
        }
        let room = state.segments[index].reserved - state.segments[index].bytes.count
        if room == 0 {
            let reserved = state.segments[index].reserved
            return .grow(
                state.segments[index].id, by: min(limits.maxSize, max(limits.minMemory, 2 * reserved)) - reserved)
        }
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(room))
        state.segments[index].bytes.append(contentsOf: part)
        if isFull(state.segments[index]) && state.storing < Self.maxStoring { startStoring(&state) }
        return .written(part.count)
    }

    /// - Returns: false if there is no memory, and other segments have to be stored first.
    private func grow(_ id: Int, by count: Int) -> Bool {
        let isReserved = storage.budget.reserve(count, for: .unstored)
        let (unused, canContinue) = state.withLock { state -> (Int, Bool) in
            guard let index = state.segments.indices.last, state.segments[index].id == id,
                state.segments[index].isFilling, state.failure == nil
            else { return (isReserved ? count : 0, true) }
            if isReserved {
                state.segments[index].reserved += count
                state.segments[index].bytes.reserveCapacity(state.segments[index].reserved)
                return (0, true)
            }
            // The memory is short, so a smaller object is stored.
            if state.storing >= Self.maxStoring { return (0, false) }
            startStoring(&state)
            return (0, true)
        }
        storage.budget.release(unused, from: .unstored)
        return canContinue
    }

    /// - Returns: false if there is no memory.
    private func begin(_ count: Int) -> Bool {
        for size in [count, limits.minMemory] where storage.budget.reserve(size, for: .unstored) {
            beginSegment(size)
            return true
        }
        return false
    }

    /// The time after which a writer checks whether it may still write, in nanoseconds.
    private static let maxWait: Int64 = 100_000_000

    func awaitRoom() {
        let deadline = SystemClock.monotonicNanoseconds() + Self.maxWait
        let needsMemory = state.wait(until: deadline) { state -> Bool? in
            if state.failure != nil { return false }
            guard let last = state.segments.last, last.isFilling else { return true }
            return state.storing < Self.maxStoring || last.bytes.count < last.reserved ? false : nil
        }
        if needsMemory == true, storage.budget.awaitMemory(limits.minMemory, until: deadline) {
            beginSegment(limits.minMemory)
        }
    }

    /// - Parameter reserved: the memory of the segment, which the budget has reserved.
    private func beginSegment(_ reserved: Int) {
        let isUsed = state.withLock { state in
            if state.failure != nil || state.segments.last?.isFilling ?? false { return false }
            append([], reserved: reserved, &state)
            return true
        }
        if !isUsed { storage.budget.release(reserved, from: .unstored) }
    }

    private func append(_ bytes: [UInt8], reserved: Int, _ state: inout State) {
        state.lastSegmentID += 1
        var segment = Segment(id: state.lastSegmentID, start: state.size, bytes: bytes, reserved: reserved)
        segment.bytes.reserveCapacity(reserved)
        state.segments.append(segment)
    }

    // MARK: Storing

    /// Lets another thread store the last segment.
    private func startStoring(_ state: inout State) {
        let index = state.segments.count - 1
        let id = state.segments[index].id
        state.segments[index].phase = .storing
        let queuedAt = SystemClock.monotonicNanoseconds()
        if storage.write({ [self] in store(id, queuedAt: queuedAt) }) { return }
        fail(.timedOut, &state)
    }

    private func store(_ id: Int, queuedAt: Int64) {
        defer { state.notifyAll() }
        let segment = state.withLock { state in
            state.segments.first { $0.id == id }
        }
        guard let segment else { return }
        let unneeded: String?
        do throws(Errno) {
            if let error = storage.failure(since: queuedAt) { throw error }
            let key = try storage.put(segment.bytes, of: name)
            let session = Self.session(of: key)
            unneeded = state.withLock { state in
                // The segment was removed by a truncation, and other bytes may have replaced its bytes.
                guard let index = state.segments.firstIndex(where: { $0.id == id }) else { return key }
                // The session of the earlier objects has ended, so no transaction accepts them. An upload without a row
                // has no hold, and would notice this only at its end.
                if let earlier = state.unregistered.first, Self.session(of: earlier) != session {
                    fail(.timedOut, &state)
                    return key
                }
                state.unregistered.insert(key)
                state.segments[index].phase = .stored(
                    Piece(start: segment.start, size: segment.bytes.count, storage: .object(key)))
                moveStored(&state)
                return nil
            }
        } catch {
            unneeded = nil
            state.withLock { state in
                fail(error, &state)
            }
        }
        if let unneeded { storage.discard([unneeded]) }
    }

    /// The part of a key that identifies the session that has stored the object.
    private static func session(of key: String) -> Substring {
        key[(key.lastIndex(of: "/") ?? key.startIndex)...].prefix { $0 != "-" }
    }

    /// Moves the first segments to `pieces`, as far as they are stored.
    func moveStored(_ state: inout State) {
        while case .stored(let piece) = state.segments.first?.phase {
            let segment = state.segments.removeFirst()
            state.pieces.append(piece)
            state.changedFrom = min(state.changedFrom ?? piece.start, piece.start)
            keepCopy(segment, &state)
        }
    }

    /// Keeps the bytes of a segment after they were stored, if there is enough memory: digests read them soon, and the
    /// next synchronization may store them again, together with the bytes that follow.
    func keepCopy(_ segment: Segment, _ state: inout State) {
        storage.budget.release(segment.reserved, from: .unstored)
        storage.budget.release(state.copy?.reserved ?? 0, from: .copy)
        state.copy = segment
        state.copy?.reserved = segment.bytes.count
        if !storage.budget.reserve(segment.bytes.count, for: .copy) { state.copy = nil }
    }

    func fail(_ error: Errno, _ state: inout State) {
        if state.failure == nil { state.failure = error }
        releaseMemory(&state)
    }

    /// The number of bytes that ``storeEarly()`` would start to store.
    var unstoredCount: Int {
        state.withLock { state in
            guard let last = state.segments.last, last.isFilling, state.storing < Self.maxStoring else { return 0 }
            return last.bytes.count
        }
    }

    /// Starts to store the last segment although it is not full. Removes it if it is empty: the writer for which it was
    /// begun may have ended, and a writer that continues waits for a new segment.
    /// - Returns: the number of bytes of memory that this call releases, now or as soon as the segment is stored.
    func storeEarly() -> Int {
        state.withLock { state in
            guard let last = state.segments.last, last.isFilling else { return 0 }
            if last.bytes.isEmpty {
                removeEmpty(last, &state)
                return last.reserved
            }
            if state.storing >= Self.maxStoring { return 0 }
            startStoring(&state)
            return last.reserved
        }
    }

    /// Removes the last segment, which is `segment` and has no bytes.
    func removeEmpty(_ segment: Segment, _ state: inout State) {
        state.segments.removeLast()
        storage.budget.release(segment.reserved, from: .unstored)
    }

    func dropCopy() { state.withLock { dropCopy(&$0) } }

    private func dropCopy(_ state: inout State) {
        storage.budget.release(state.copy?.reserved ?? 0, from: .copy)
        state.copy = nil
    }

    /// Does nothing: full segments are stored anyway.
    func startWriteBack(at offset: Int64, count: Int64) {}

    /// Does nothing: ``awaitRoom()`` waits.
    func awaitWriteBack(at offset: Int64, count: Int64) {}

    // MARK: Attributes

    func size() throws(Errno) -> Int64 { state.withLock { $0.size } }

    func truncate(to size: Int64) throws(Errno) {
        let isTruncated = try state.withLock { (state) throws(Errno) in
            if let failure = state.failure { throw failure }
            guard size <= state.size else { throw .invalidArgument }
            return truncate(to: size, &state)
        }
        if !isTruncated { try truncateListing(to: size) }
        state.notifyAll()
    }

    /// Truncates the blob to a size at which the list has no pieces, so that earlier pieces have to be listed first.
    private func truncateListing(to size: Int64) throws(Errno) {
        let pieces = try storage.list(limits.pieces(of: name, before: size))
        // Another node may have removed the pieces.
        guard pieces.end >= size else { throw .inputOutput }
        state.withLock { state in
            if let earlier = state.earlier, size <= earlier.size {
                dropCopy(&state)
                state.list(pieces, of: name, in: storage)
                state.changedFrom = min(state.changedFrom ?? pieces.end, pieces.end)
            }
            // This also removes all segments.
            _ = truncate(to: size, &state)
        }
    }

    /// - Returns: false if the list does not have the pieces before `size`: then the caller calls
    ///   ``truncateListing(to:)``.
    private func truncate(to size: Int64, _ state: inout State) -> Bool {
        guard size < state.size else { return true }
        if let earlier = state.earlier, size <= earlier.size { return false }
        var start: Segment?
        while let last = state.segments.last, last.end > size {
            state.segments.removeLast()
            if case .stored(let piece) = last.phase, let key = piece.object {
                // No transaction can record the object, because it is not registered.
                state.unregistered.remove(key)
                storage.discard([key])
            }
            let remaining = max(0, Int(size - last.start))
            storage.budget.release(last.reserved - remaining, from: .unstored)
            if remaining > 0 { start = last }
        }
        if let start {
            let bytes = Array(start.bytes.prefix(Int(size - start.start)))
            append(bytes, reserved: bytes.count, &state)
        }
        guard state.pieces.end > size else { return true }
        dropCopy(&state)
        while let last = state.pieces.last, last.end > size {
            state.pieces.removeLast()
            state.changedFrom = min(state.changedFrom ?? last.start, last.start)
            if last.start < size { state.pieces.append(last.prefix(upTo: size)) }
        }
        return true
    }

    func identity() throws(Errno) -> String { name }

    func setModified(_ nanoseconds: Int64) throws(Errno) { state.withLock { $0.modified = nanoseconds } }

    func attributes() throws(Errno) -> PublishedFile.Attributes {
        let (size, modified) = state.withLock { ($0.size, $0.modified) }
        return try PublishedFile.Attributes(blob: name, size: size, modified: modified)
    }

    func openForReading() throws(Errno) -> FileDescriptor? { nil }
}

extension PublishedFile.Attributes {
    /// Creates the same attributes on every node. They are unique, because no two publications have the same blob.
    /// - Parameter modified: nanoseconds since 1970.
    init(blob: String, size: Int64, modified: Int64) throws(Errno) {
        let numbers = [size, modified].map { String($0, radix: 16) }
        guard let tag = EntityTag(opaque: ([blob] + numbers).joined(separator: "-")) else { throw .invalidArgument }
        self.init(
            size: size, modifiedSeconds: modified / 1_000_000_000, modifiedNanoseconds: modified % 1_000_000_000,
            entityTag: tag)
    }
}
