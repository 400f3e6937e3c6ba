import SystemCalls

extension OpenUpload {
    private static let reservationStep: Int64 = 1 << 20
    private static let writeBackStep: Int64 = 4 << 20
    /// Bytes that are left to the catalog, whatever has begun.
    private static let catalogRoom: Int64 = 64 << 20
    private static let spaceStep: Int64 = 4 << 20
    private static let digestStep: Int64 = 1 << 20
    private static let digestBudget: Int64 = 8 << 20

    /// Puts bytes behind those that are in place. What was written before an error counts, what came after it does not.
    ///
    /// - Parameter completes: whether these are the last bytes: once they are in place nobody takes the upload over any more.
    func append(_ bytes: UnsafeRawBufferPointer, completes: Bool = false, as epoch: Int64) throws(StoreError) {
        awaitCount(beforeAppending: bytes.count)
        let isRunning = try monitor.withLock { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            guard state.activity == .idle, let blob = state.blob else {
                throw .invalidState("the upload takes no bytes now")
            }
            let (end, overflow) = state.written.addingReportingOverflow(Int64(bytes.count))
            if let length = state.length {
                if overflow || end > length { throw .lengthExceeded(length: length) }
            } else {
                try reserve(upTo: end, &state)
            }
            try requireSpace(upTo: end, &state)
            defer { receivedMirror.store(state.received, ordering: .releasing) }
            var rest = bytes
            while !rest.isEmpty {
                let count = try write(rest, to: blob, at: state.written)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                state.written += Int64(count)
                if !state.isStaging { state.received = state.written }
            }
            // Staged bytes are still to be compared, which is decided soon: others wait for that.
            if completes { state.activity = state.isStaging ? .settling : .processing }
            return needsBackgroundWork(state)
        }
        if isRunning { keepPace(as: epoch) }
    }

    /// The quota is known only once everything is counted. Others can use the upload meanwhile.
    private func awaitCount(beforeAppending count: Int) {
        if store.ledger.canReserve { return }
        let reserves = monitor.withLock { $0.length == nil && $0.written + Int64(count) > $0.reserved }
        if reserves { store.ledger.waitUntilCounted() }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, to blob: any Blob, at offset: Int64
    ) throws(StoreError) -> Int {
        do throws(Errno) { return try blob.write(bytes, at: offset) } catch { throw .failure(error, during: "write") }
    }

    /// Counts bytes of an upload of unknown length against the quota, in steps.
    private func reserve(upTo end: Int64, _ state: inout State) throws(StoreError) {
        guard end > state.reserved else { return }
        let step = max(Self.reservationStep, end - state.reserved)
        do throws(StoreError) {
            try store.ledger.reserve(step, for: state.principal)
            state.reserved += step
        } catch {
            // Near the limit to the byte.
            let exact = end - state.reserved
            try store.ledger.reserve(exact, for: state.principal)
            state.reserved += exact
        }
    }

    /// The catalog lies on the same disk: before bytes take its room, they are refused.
    private func requireSpace(upTo end: Int64, _ state: inout State) throws(StoreError) {
        guard end > state.spaceCheckedUpTo else { return }
        let space = try translating("ask for free space") { () throws(Errno) in try store.area.space() }
        let floor = min(store.configuration.effectiveMinFree(total: space.total) / 2, Self.catalogRoom)
        if let shortage = store.shortage(free: space.free, kept: floor) { throw .insufficientSpace(shortage) }
        // The nearer the floor, the sooner again.
        state.spaceCheckedUpTo = end + min(Self.spaceStep, (space.free - floor) / 4)
    }

    private func needsBackgroundWork(_ state: State) -> Bool {
        if store.writesBack && state.written - state.writeBackStarted >= Self.writeBackStep { return true }
        if !state.digests.isEmpty && state.received - state.digests.covered >= Self.digestStep { return true }
        guard let staged = state.stagedDigests, !staged.isEmpty else { return false }
        return state.written - staged.covered >= Self.digestStep
    }

    /// Starts what runs beside the receiving thread, and slows that one down where the disk is slower.
    private func keepPace(as epoch: Int64) {
        let blob = monitor.withLock { state -> (any Blob)? in
            guard state.refusal(epoch) == nil, let blob = state.blob else { return nil }
            schedule(state.digests, over: blob, isStaged: false)
            if let staged = state.stagedDigests { schedule(staged, over: blob, isStaged: true) }
            if store.writesBack && state.written - state.writeBackStarted >= Self.writeBackStep {
                let start = state.writeBackStarted
                let count = state.written - start
                state.writeBackStarted = state.written
                store.writeBack.enqueue { blob.startWriteBack(at: start, count: count) }
            }
            return blob
        }
        guard let blob, store.writesBack else { return }
        while let start = dirtyStart(as: epoch) {
            blob.awaitWriteBack(at: start, count: Self.writeBackStep)
            monitor.withLock { state in
                if state.refusal(epoch) == nil { state.writeBackAwaited = start + Self.writeBackStep }
            }
        }
    }

    /// Where the part begins that has to leave the cache before more is taken; nil while the window is not full.
    private func dirtyStart(as epoch: Int64) -> Int64? {
        monitor.withLock { state in
            let start = max(state.writeBackAwaited, state.durable)
            guard state.refusal(epoch) == nil, state.written - start > store.configuration.writeBackWindow else {
                return nil
            }
            return start
        }
    }

    private func schedule(_ tracker: DigestTracker, over blob: any Blob, isStaged: Bool) {
        guard !tracker.isEmpty,
            tracker.isScheduled.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        store.digesting.enqueue { [self] in
            let end = monitor.withLock { state -> Int64? in
                // The tracker of a state that was reset meanwhile is nobody's any more.
                if isStaged { return state.stagedDigests === tracker ? state.written : nil }
                return state.digests === tracker ? state.received : nil
            }
            // An error shows again when somebody asks for the digest.
            if let end { _ = try? tracker.advance(over: blob, to: end, budget: Self.digestBudget) }
            tracker.isScheduled.store(false, ordering: .releasing)
        }
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, as epoch: Int64
    ) throws(StoreError) -> Int {
        let (blob, end) = try monitor.withLock { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            guard let blob = state.blob else { throw .invalidState("the bytes are gone") }
            return (blob, state.received)
        }
        guard offset >= 0, offset < end else { return 0 }
        let count = Int(min(Int64(buffer.count), end - offset))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        return try translating("read") { () throws(Errno) in try blob.read(into: part, at: offset) }
    }

    /// Records the length with the next acknowledgment and reserves what it needs of the quota.
    func setLength(_ length: Int64, as epoch: Int64) throws(StoreError) {
        store.ledger.waitUntilCounted()
        try change { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            if state.length == length { return }
            guard state.length == nil, length >= 0, length >= state.written else {
                throw .invalidState("the length disagrees with what is known")
            }
            if length > state.reserved {
                try store.ledger.reserve(length - state.reserved, for: state.principal)
                state.reserved = length
            }
            state.length = length
            state.lengthIsRecorded = isTransient
        }
    }
}
