import HTTPSemantics
import SystemCalls

extension UploadLease {
    private static let reservationStep: Int64 = 1 << 20
    private static let smallPart = 32 << 10
    private static let digestStep: Int64 = 1 << 20
    private static let digestBudget: Int64 = 8 << 20

    /// Appends bytes to the upload. After an error, ``received`` may include a prefix of them.
    ///
    /// - Parameter completes: whether these are the last bytes. Once they are written, the upload cannot be taken over
    ///   any more, and the caller must call ``beginProcessing(marksDurably:)`` or ``endProcessing()``.
    package func append(_ bytes: UnsafeRawBufferPointer, completes: Bool = false) throws(StoreError) {
        do throws(StoreError) { try appendAtOnce(bytes, completes: completes) } catch {
            guard case .quotaExceeded = error, bytes.count > Self.smallPart else { throw error }
            // Nothing was appended. The bytes are appended again in small parts, until the quota is nearly full.
            var remaining = bytes
            while !remaining.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: remaining.prefix(Self.smallPart))
                remaining = UnsafeRawBufferPointer(rebasing: remaining[part.count...])
                try appendAtOnce(part, completes: completes && remaining.isEmpty)
            }
        }
    }

    private func appendAtOnce(_ bytes: UnsafeRawBufferPointer, completes: Bool) throws(StoreError) {
        awaitCount(beforeAppending: bytes.count)
        var remaining = bytes
        while true {
            let (fullBlob, isBehind) = try upload.monitor.withLock {
                (state) throws(StoreError) -> ((any Blob)?, Bool) in
                let end = try end(ofAppending: remaining.count, state)
                guard let blob = state.blob else { throw .invalidState("the bytes are not available any more") }
                try reserve(upTo: end, &state)
                try requireSpace(upTo: end, &state)
                defer { upload.mirror(state.machine) }
                while !remaining.isEmpty {
                    let count: Int
                    do throws(StoreError) { count = try write(remaining, to: blob, at: state.machine.written) } catch {
                        state.waitingLease = epoch
                        throw error
                    }
                    if count == 0 {
                        state.waitingLease = epoch
                        return (blob, false)
                    }
                    remaining = UnsafeRawBufferPointer(rebasing: remaining[count...])
                    state.machine.append(count)
                }
                if completes { state.machine.endContent() }
                state.waitingLease = nil
                return (nil, needsBackgroundWork(state))
            }
            guard let fullBlob else {
                if isBehind { applyBackpressure() }
                return
            }
            // Another request can take the upload over meanwhile.
            fullBlob.awaitRoom()
        }
    }

    private func end(ofAppending count: Int, _ state: OpenUpload.State) throws(StoreError) -> Int64 {
        do throws(StoreError) { return try state.machine.end(ofAppending: count, as: epoch) } catch {
            throw state.error(of: epoch, error)
        }
    }

    /// Waits until the usage of the principal has been counted, without holding the lock of the upload.
    private func awaitCount(beforeAppending count: Int) {
        if context.ledger.canReserve { return }
        let reserves = upload.monitor.withLock { state in
            state.machine.missingReservation(upTo: state.machine.written + Int64(count)) > 0
        }
        if reserves { context.ledger.waitUntilCounted() }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, to blob: any Blob, at offset: Int64
    ) throws(StoreError) -> Int {
        do throws(Errno) { return try blob.write(bytes, at: offset) } catch {
            throw .failure(error, during: "write the content of an upload")
        }
    }

    /// Counts bytes of an upload of unknown length against the quota, in steps.
    private func reserve(upTo end: Int64, _ state: inout OpenUpload.State) throws(StoreError) {
        let missing = state.machine.missingReservation(upTo: end)
        guard missing > 0 else { return }
        if upload.isTransient { try context.requireSharedLimits(of: state.principal, for: end) }
        for step in [max(Self.reservationStep, missing), missing] {
            do throws(StoreError) {
                try context.ledger.reserve(step, for: state.principal)
                state.machine.reserve(step)
                return
            } catch {
                // Near the limit only the exact number may fit.
                if step == missing { throw error }
            }
        }
    }

    /// Throws if the bytes would use the space that the catalog needs, which is on the same disk.
    private func requireSpace(upTo end: Int64, _ state: inout OpenUpload.State) throws(StoreError) {
        guard end > state.pace.spaceCheckedUpTo else { return }
        let space = try translating("read the free space") { () throws(Errno) in try context.area.space() }
        let floor = context.floor(of: space)
        if let shortage = context.shortage(free: space.free, kept: floor) { throw .insufficientSpace(shortage) }
        state.pace.spaceChecked(upTo: end, spare: space.free - floor)
    }

    private func needsBackgroundWork(_ state: OpenUpload.State) -> Bool {
        let machine = state.machine
        if context.shouldSynchronize && state.pace.isDue(machine.written) { return true }
        if !state.digests.isEmpty && machine.received - state.digests.covered >= Self.digestStep { return true }
        guard let staged = state.stagedDigests, !staged.isEmpty else { return false }
        return machine.written - staged.covered >= Self.digestStep
    }

    /// Starts digests and write-back in the background, and blocks the receiving thread while too many bytes are not on
    /// the disk yet.
    private func applyBackpressure() {
        let blob = upload.monitor.withLock { state -> (any Blob)? in
            guard state.machine.refusal(of: epoch) == nil, let blob = state.blob else { return nil }
            schedule(state.digests, over: blob, isStaged: false)
            if let staged = state.stagedDigests { schedule(staged, over: blob, isStaged: true) }
            if context.shouldSynchronize, let part = state.pace.start(state.machine.written) {
                context.writeBack.enqueue {
                    blob.startWriteBack(at: part.lowerBound, count: part.upperBound - part.lowerBound)
                }
            }
            return blob
        }
        guard let blob, context.shouldSynchronize else { return }
        while let start = excess() {
            blob.awaitWriteBack(at: start, count: WritePace.step)
            upload.monitor.withLock { state in
                if state.machine.refusal(of: epoch) == nil { state.pace.awaited(from: start) }
            }
        }
    }

    private func excess() -> Int64? {
        upload.monitor.withLock { state in
            guard state.machine.refusal(of: epoch) == nil else { return nil }
            return state.pace.excess(
                state.machine.written, durable: state.machine.durable, window: context.configuration.writeBackWindow)
        }
    }

    private func schedule(_ tracker: DigestTracker, over blob: any Blob, isStaged: Bool) {
        guard !tracker.isEmpty,
            tracker.isScheduled.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        context.digesting.enqueue { [upload] in
            let end = upload.monitor.withLock { state -> Int64? in
                // The state to which the tracker belongs may have been reset.
                if isStaged { return state.stagedDigests === tracker ? state.machine.written : nil }
                return state.digests === tracker ? state.machine.received : nil
            }
            // If this fails, the error occurs again when the digest is needed.
            if let end { _ = try? tracker.advance(over: blob, to: end, budget: Self.digestBudget) }
            tracker.isScheduled.store(false, ordering: .releasing)
        }
    }

    /// Sets the length of the representation, which cannot change later. The length is durable when ``acknowledge()``
    /// returns.
    package func setLength(_ length: Int64) throws(StoreError) {
        let needsQuota = try upload.monitor.withLock { (state) throws(StoreError) in
            try state.machine.reservation(forLength: length, as: epoch) ?? 0 > 0
        }
        if needsQuota { context.ledger.waitUntilCounted() }
        try upload.change { (state) throws(StoreError) in
            guard let missing = try state.machine.reservation(forLength: length, as: epoch) else { return }
            if missing > 0 {
                try context.ledger.reserve(missing, for: state.principal)
                state.machine.reserve(missing)
            }
            state.machine.setLength(length)
        }
    }

    /// Reads received bytes and returns their number, which is smaller than the buffer only at their end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        let (blob, end) = try bytes { ($0.machine.received) }
        guard offset >= 0, offset < end else { return 0 }
        let count = Int(min(Int64(buffer.count), end - offset))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        return try translating("read the content of an upload") { () throws(Errno) in
            try blob.read(into: part, at: offset)
        }
    }

    /// Returns the bytes, and the value that `body` reads from the state.
    private func bytes<Result>(
        _ body: (OpenUpload.State) throws(StoreError) -> Result
    ) throws(StoreError) -> (any Blob, Result) {
        try upload.monitor.withLock { (state) throws(StoreError) in
            try state.machine.requireBytes(epoch)
            guard let blob = state.blob else { throw .invalidState("the bytes are not available any more") }
            return (blob, try body(state))
        }
    }

    // MARK: Staging

    /// Begins staging: bytes are written to their position, but do not count as received before ``commitStaged()``. A
    /// take-over, a release or a crash discards them.
    ///
    /// - Parameter digests: the digests that are calculated while the bytes arrive.
    package func beginStaging(digests: Set<DigestAlgorithm> = []) throws(StoreError) {
        try upload.change { (state) throws(StoreError) in
            try state.machine.beginStaging(as: epoch)
            state.stagedDigests = DigestTracker(digests, base: state.machine.received)
        }
    }

    /// Counts the staged bytes as received.
    package func commitStaged() throws(StoreError) {
        try upload.change { (state) throws(StoreError) in
            try state.machine.commitStaged(as: epoch)
            state.stagedDigests = nil
        }
    }

    /// Discards the staged bytes.
    package func discardStaged() {
        upload.update { state in
            if state.machine.discardStaged(as: epoch) { state.truncateStaged() }
        }
    }

    // MARK: Digests

    /// Returns the digest of the bytes staged so far.
    package func stagedDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        let (blob, (tracker, end)) = try bytes { (state) throws(StoreError) in
            guard let tracker = state.stagedDigests else { throw .invalidState("nothing is staged") }
            return (tracker, state.machine.written)
        }
        do throws(Errno) {
            return try tracker.digest(algorithm, of: blob, to: end)
        } catch {
            // If the upload was taken over, its staged bytes were removed.
            if let refusal = upload.monitor.withLock({ $0.machine.refusal(of: epoch) }) { throw refusal }
            throw .failure(error, during: "compute the digest of an upload")
        }
    }

    /// Returns the digest of all received bytes. Bytes that were digested when they arrived are not read again.
    package func representationDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        let (blob, (tracker, end)) = try bytes { ($0.digests, $0.machine.received) }
        return try translating("compute the digest of an upload") { () throws(Errno) in
            try tracker.digest(algorithm, of: blob, to: end)
        }
    }
}
