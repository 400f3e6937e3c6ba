import SystemCalls
import UploadStorage

extension ObjectBlob {
    /// Stores all bytes, and registers the new pieces with the ledger. The next transaction of the upload records them.
    ///
    /// After an error the pieces in the database are unchanged, and the blob has to be opened again. It is an error if this
    /// takes longer than ``PieceLimits/synchronizationTime``, for example because the storage accepts bytes slowly.
    func synchronize(including detail: BlobDetail?) throws(Errno) {
        let deadline = SystemClock.deadline(in: storage.limits.synchronizationTime)
        try wait(until: deadline) { state -> Void? in
            if state.isSynchronizing { return nil }
            state.isSynchronizing = true
            return ()
        }
        defer {
            state.withLock { $0.isSynchronizing = false }
            state.notifyAll()
        }
        while try !storeTail(until: deadline) {}
    }

    /// Waits for a result of `attempt`. If there is none at the deadline, the blob cannot be used any more.
    private func wait<Result>(
        until deadline: Int64, _ attempt: (inout State) -> Result?
    ) throws(Errno) -> Result {
        if let result = state.wait(until: deadline, attempt) { return result }
        state.withLock { fail(.timedOut, &$0) }
        state.notifyAll()
        throw .timedOut
    }

    func failure(since time: Int64) -> Errno? {
        let needsObject = state.withLock { state in
            guard let last = state.segments.last else { return false }
            let size = mergeable(with: last, state.pieces).reduce(last.bytes.count) { $0 + $1.size }
            return state.segments.count > 1 || size > storage.limits.maxInlineSize
        }
        return needsObject ? storage.failure(since: time) : nil
    }

    /// The last bytes that are not stored, and the pieces before them with which they become one piece.
    private struct Tail {
        var segment: Segment?
        var merged: ArraySlice<Piece> = []

        var start: Int64 { merged.first?.start ?? segment?.start ?? 0 }
        var count: Int { merged.reduce(segment?.bytes.count ?? 0) { $0 + $1.size } }
    }

    /// - Returns: false if bytes were truncated meanwhile, so this has to be repeated.
    private func storeTail(until deadline: Int64) throws(Errno) -> Bool {
        let (segment, end) = state.withLock { state in (beginTail(&state), state.size) }
        let waited = try wait(until: deadline) { state -> Result<Tail?, Errno>? in
            if let failure = state.failure { return .failure(failure) }
            guard let segment else {
                return state.pieces.end >= min(end, state.size) ? .success(Tail(segment: nil)) : nil
            }
            if !state.segments.contains(where: { $0.id == segment.id }) { return .success(nil) }
            // The segments before it are stored first.
            guard state.segments.first?.id == segment.id else { return nil }
            return .success(Tail(segment: segment, merged: mergeable(with: segment, state.pieces)))
        }
        guard var tail = try waited.get() else { return false }
        if tail.segment == nil {
            storage.discard(state.withLock { register(&$0) })
            return true
        }
        // The budget does not count a copy that fits into a row.
        var reserved = 0
        if !tail.merged.isEmpty && tail.count > storage.limits.maxInlineSize {
            if storage.budget.reserve(tail.count, for: .unstored) { reserved = tail.count } else { tail.merged = [] }
        }
        defer { storage.budget.release(reserved, from: .unstored) }
        do throws(Errno) { return try store(tail, until: deadline) } catch {
            state.withLock { fail(error, &$0) }
            throw error
        }
    }

    /// Begins to store the last segment, so that the bytes that arrive from now on are in another one.
    private func beginTail(_ state: inout State) -> Segment? {
        guard let last = state.segments.last, last.isFilling else { return nil }
        if last.bytes.isEmpty {
            removeEmpty(last, &state)
            return nil
        }
        state.segments[state.segments.count - 1].phase = .storing
        return last
    }

    /// The last pieces, as far as they are not larger than twice the bytes that follow. So each of the remaining pieces is
    /// more than twice as large as the next one, unless both together exceed the maximum: their number is logarithmic. A
    /// byte is stored again only if its piece grows to at least one and a half times its size.
    private func mergeable(with segment: Segment, _ pieces: [Piece]) -> ArraySlice<Piece> {
        var count = segment.bytes.count
        var first = pieces.endIndex
        while first > 0, pieces[first - 1].size <= 2 * count, pieces[first - 1].size + count <= storage.limits.maxSize {
            first -= 1
            count += pieces[first].size
        }
        return pieces[first...]
    }

    private func store(_ tail: Tail, until deadline: Int64) throws(Errno) -> Bool {
        guard let segment = tail.segment, let content = try content(of: tail, until: deadline) else { return false }
        let storage: Piece.Storage =
            content.count <= self.storage.limits.maxInlineSize
            ? .inline(content) : .object(try self.storage.put(content, of: name, until: deadline))
        let piece = Piece(start: tail.start, size: content.count, storage: storage)
        let unneeded = state.withLock { state -> [String]? in
            // A truncation replaces the segment. The pieces before it cannot have changed as long as it exists.
            guard state.segments.first?.id == segment.id else { return nil }
            state.segments.removeFirst()
            state.pieces.removeLast(tail.merged.count)
            state.pieces.append(piece)
            state.changedFrom = min(state.changedFrom ?? piece.start, piece.start)
            if let key = piece.object { state.unregistered.insert(key) }
            var copy = Segment(id: segment.id, start: piece.start, bytes: content, reserved: segment.reserved)
            copy.phase = .stored(piece)
            keepCopy(copy, &state)
            moveStored(&state)
            return register(&state)
        }
        state.notifyAll()
        self.storage.discard(unneeded ?? piece.object.map { [$0] } ?? [])
        return unneeded != nil
    }

    /// - Returns: `nil` if bytes were truncated meanwhile.
    private func content(of tail: Tail, until deadline: Int64) throws(Errno) -> [UInt8]? {
        guard let segment = tail.segment else { return nil }
        if tail.merged.isEmpty { return segment.bytes }
        let count = Int(segment.start - tail.start)
        var failure: Errno?
        var content = [UInt8](unsafeUninitializedCapacity: tail.count) { buffer, initialized in
            let part = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count])
            do throws(Errno) {
                initialized = try read(into: part, at: tail.start, until: deadline)
            } catch { failure = error }
        }
        if let failure { throw failure }
        // Only a truncation can make the blob shorter.
        guard content.count == count else { return nil }
        content += segment.bytes
        return content
    }

    private func register(_ state: inout State) -> [String] {
        guard let from = state.changedFrom else { return [] }
        let pieces = state.pieces[state.pieces.index(containing: from)...]
        // A stored segment that follows an unstored one is registered later.
        let later = Set(state.segments.compactMap(\.storedObject))
        let unneeded = storage.ledger.register(
            name, of: ObjectIdentifier(self), from: from, Array(pieces), new: state.unregistered.subtracting(later))
        (state.changedFrom, state.unregistered) = (nil, later)
        shorten(&state)
        return unneeded
    }

    /// Forgets the first pieces of a long list, as far as the database has them.
    private func shorten(_ state: inout State) {
        let (pieces, limits) = (state.pieces, storage.limits)
        var (first, data) = (pieces.endIndex, 0)
        while first > 0, pieces.endIndex - first < limits.maxListed, data < limits.maxLastData {
            first -= 1
            data += pieces[first].inlineSize
        }
        // The list is not shortened at each synchronization: a reader of earlier bytes reads their list again
        // afterwards.
        let removedData = pieces[..<first].reduce(0) { $0 + $1.inlineSize }
        if first < limits.maxListed, removedData < limits.maxLastData { return }
        first = min(first, pieces.index(containing: storage.ledger.recordedEnd(of: name, by: ObjectIdentifier(self))))
        if first > 0 { state.list(Array(pieces[first...]), of: name, in: storage) }
    }
}

extension ObjectBlob.Segment {
    /// The object of a stored segment.
    fileprivate var storedObject: String? {
        if case .stored(let piece) = phase { piece.object } else { nil }
    }
}
