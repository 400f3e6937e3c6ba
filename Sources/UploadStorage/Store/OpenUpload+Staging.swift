import HTTPSemantics
import SystemCalls

extension OpenUpload {
    /// From here on bytes are put in place without counting.
    func beginStaging(_ digests: Set<DigestAlgorithm>, as epoch: Int64) throws(StoreError) {
        try change { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            if state.isStaging { throw .invalidState("staging has begun already") }
            state.isStaging = true
            state.stagedDigests = DigestTracker(digests, base: state.received)
        }
    }

    func commitStaged(as epoch: Int64) throws(StoreError) {
        try change { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            state.isStaging = false
            state.stagedDigests = nil
            state.received = state.written
            if state.activity == .settling { state.activity = .processing }
        }
    }

    func discardStaged(as epoch: Int64) {
        update { state in
            guard state.refusal(epoch) == nil else { return }
            state.dropStaged()
            if state.activity == .settling { state.activity = .idle }
        }
    }

    func stagedDigest(_ algorithm: DigestAlgorithm, as epoch: Int64) throws(StoreError) -> [UInt8] {
        let (tracker, blob, end) = try monitor.withLock { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            guard let tracker = state.stagedDigests, let blob = state.blob else {
                throw .invalidState("nothing is staged")
            }
            return (tracker, blob, state.written)
        }
        do throws(Errno) {
            return try tracker.digest(algorithm, of: blob, to: end)
        } catch {
            // Whoever took the upload over has cut off what was staged.
            if let refusal = monitor.withLock({ $0.refusal(epoch) }) { throw refusal }
            throw .failure(error, during: "digest")
        }
    }

    func representationDigest(_ algorithm: DigestAlgorithm, as epoch: Int64) throws(StoreError) -> [UInt8] {
        let (tracker, blob, end) = try monitor.withLock { (state) throws(StoreError) in
            if let refusal = state.refusal(epoch) { throw refusal }
            guard let blob = state.blob else { throw .invalidState("the bytes are gone") }
            return (state.digests, blob, state.received)
        }
        return try translating("digest") { () throws(Errno) in try tracker.digest(algorithm, of: blob, to: end) }
    }
}

extension OpenUpload.State {
    /// Forgets staged bytes. Where they cannot be cut off now, they are overwritten, or cut off before publication.
    mutating func dropStaged() {
        guard isStaging else { return }
        isStaging = false
        stagedDigests = nil
        written = received
        writeBackStarted = min(writeBackStarted, written)
        writeBackAwaited = min(writeBackAwaited, written)
        _ = try? blob?.truncate(to: received)
    }
}
