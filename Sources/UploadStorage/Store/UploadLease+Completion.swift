import HTTPSemantics
import ResumableUpload
import SystemCalls

extension UploadLease {
    /// Makes all received bytes durable and begins the processing by the target. From now on a take-over waits.
    ///
    /// - Parameter shouldMarkDurably: whether the processing is recorded durably, for a target that must not run twice.
    ///   After a crash, or a release without a response, the upload then gets
    ///   ``StoreConfiguration/interruptedResponse``.
    package func beginProcessing(shouldMarkDurably: Bool) throws(StoreError) {
        try reserve { (machine) throws(StoreError) in
            try machine.beginProcessing(as: epoch, shouldMarkDurably: shouldMarkDurably)
        } orElse: {
            $0.processingFailed(as: epoch)
        } then: { () throws(StoreError) in
            if shouldMarkDurably { try markProcessing() }
        }
    }

    /// Records durably that the target must not run again, because it may have an effect from now on. Call it only
    /// after ``beginProcessing(shouldMarkDurably:)``. It does nothing for a plain upload.
    package func markProcessing() throws(StoreError) {
        guard !upload.isTransient else { return }
        do throws(StoreError) { try context.catalog.commit(.markProcessing(upload.id, epoch: epoch)) } catch {
            upload.update { $0.machine.markFailed() }
            throw error
        }
        upload.update { $0.machine.mark() }
    }

    /// Whether it is recorded durably that the target must not run again.
    package var isProcessingRecorded: Bool { upload.machine.isProcessingRecorded }

    /// Revokes ``markProcessing()`` durably: the target can run again.
    package func unmarkProcessing() throws(StoreError) {
        guard upload.update({ $0.machine.unmark(as: epoch) }) == .acknowledge else { return }
        _ = try acknowledge()
    }

    /// Ends the processing without a final response; the upload can receive content again.
    ///
    /// If another request takes the upload over from now on, the closure of ``onRevocation(_:)`` is not called, so that
    /// the caller can still respond. The caller has to release the lease after this call.
    package func endProcessing() {
        if upload.update({ $0.machine.endProcessing(as: epoch) }) == .acknowledge { _ = try? acknowledge() }
    }

    /// Stores the final response durably and removes the bytes. Can be called before all bytes have arrived. The response of
    /// a target that must not run again is not lost while a shared catalog cannot be reached: this method tries to store it
    /// until the lease ends.
    /// - Parameter canWait: whether this method may try again; false when the server stops.
    package func complete(with response: Response, while canWait: () -> Bool = { true }) throws(StoreError) {
        while true {
            do throws(StoreError) {
                return try complete { () throws(StoreError) in try upload.finish(with: response) }
            } catch {
                guard case .unavailable = error, isProcessingRecorded, canWait() else { throw error }
                let next = SystemClock.monotonicNanoseconds() + Self.completionPause
                _ = upload.monitor.wait(until: next) { $0.machine.isCurrent(epoch) ? nil : () }
                guard canWait() else { throw error }
            }
        }
    }

    /// The time in nanoseconds between two attempts to store the final response.
    private static let completionPause: Int64 = 1_000_000_000

    /// - Parameter end: makes the end of the upload durable.
    private func complete<Result>(_ end: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        try reserve(
            { (machine) throws(StoreError) in try machine.beginEnding(as: epoch) },
            orElse: { $0.endingFailed(as: epoch) }, then: end)
    }

    /// Stores the final response of an upload whose processing may have had an effect that is not known.
    /// - Returns: the response.
    package func completeAsInterrupted() throws(StoreError) -> Response {
        try complete { () throws(StoreError) in try upload.finishAsInterrupted() }
    }

    /// Makes the upload permanently unusable, durably, and removes its bytes.
    package func invalidate(reason: String) throws(StoreError) {
        try complete { () throws(StoreError) in try upload.invalidate(because: reason) }
    }

    /// Waits until the machine reserves the upload for this lease, makes received bytes durable if that is necessary, and
    /// runs `body`.
    /// - Parameters:
    ///   - begin: the event that reserves the upload.
    ///   - fail: the event after a failure.
    private func reserve<Result>(
        _ begin: (inout UploadMachine) throws(StoreError) -> UploadMachine.Reservation,
        orElse fail: (inout UploadMachine) -> Void, then body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let shouldAcknowledge = try upload.monitor.waitForever { (state) throws(StoreError) -> Bool? in
            switch try begin(&state.machine) {
            case .wait: nil
            case .granted(let shouldAcknowledge): shouldAcknowledge
            }
        }
        // Wakes waiting requests: a claim that must not wait for the target resource can return now.
        upload.monitor.notifyAll()
        do throws(StoreError) {
            if shouldAcknowledge { _ = try acknowledge() }
            return try body()
        } catch {
            upload.update { fail(&$0.machine) }
            throw error
        }
    }

    /// Gives the complete bytes a name in a directory of the application that processes them. The bytes and the name are
    /// durable on return, and nothing can write to the bytes any more. The caller must remove the name.
    /// - Parameter directory: one of ``StoreConfiguration/handoverDirectories``.
    package func share(in directory: String) throws(StoreError) -> SharedFile {
        let area = try context.sharingArea
        let content = try truncateToReceived()
        try area.endWriting(content.blob)
        try upload.synchronize(content.blob, including: .attributes, duringCallOf: epoch)
        return try area.share(content.row.blob, in: directory, durably: context.shouldSynchronize)
    }

    // MARK: Publication

    /// Publishes the bytes as a file and stores the final response. If the condition returns a response, stores this
    /// response and publishes nothing. Once the intent is durable, the publication is always completed, refused or
    /// withdrawn, even after a crash.
    ///
    /// After `targetIsDirectory`, `targetIsSpecial`, `parentIsFile`, `pathTooLong` and `noFreeName` the upload is still in
    /// processing, and the caller must complete or end it. After `io`, the lease has ended if the publication was decided.
    /// If the file could not be made durable, the upload is invalid; otherwise the next take-over completes the
    /// publication.
    package func publish(_ publication: Publication) throws(StoreError) -> Response {
        var publication = publication
        publication.refused = try publication.refused.saved()
        if !upload.machine.isProcessing(as: epoch) { try beginProcessing(shouldMarkDurably: false) }
        return try reserve(
            { (machine) throws(StoreError) in try machine.beginPublishing(as: epoch) },
            orElse: { $0.publishingFailed(as: epoch) }
        ) { () throws(StoreError) in
            try publishUnderSomeName(publication, truncateToReceived())
        }
    }

    /// Opens the file with all received bytes, at offset 0 and only for reading. Nothing writes to the file any more if
    /// the processing has begun.
    /// - Returns: nil if the bytes are not in a local file.
    package func openForReading() throws(StoreError) -> FileDescriptor? {
        let blob = try truncateToReceived().blob
        return try translating("open the content of an upload") { () throws(Errno) in try blob.openForReading() }
    }

    /// Truncates the blob after the received bytes, because the blob becomes the published file.
    private func truncateToReceived() throws(StoreError) -> OpenUpload.Content {
        let content = try upload.content()
        let isLonger = try translating("truncate the upload") { () throws(Errno) in
            let isLonger = try content.blob.size() != content.machine.received
            if isLonger { try content.blob.truncate(to: content.machine.received) }
            return isLonger
        }
        if isLonger || content.machine.canHaveRemovedBytes {
            try upload.synchronize(content.blob, including: nil, duringCallOf: epoch)
        }
        return content
    }

    // MARK: Received and staged bytes

    /// Reads received bytes and returns their number, which is smaller than the buffer only at their end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        let (blob, state) = try bytes()
        let end = state.machine.received
        guard offset >= 0, offset < end else { return 0 }
        let count = Int(min(Int64(buffer.count), end - offset))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        return try translating("read the content of an upload") { () throws(Errno) in
            try blob.read(into: part, at: offset)
        }
    }

    /// Returns the bytes, and the state at this moment.
    private func bytes() throws(StoreError) -> (any Blob, OpenUpload.State) {
        let state = upload.snapshot
        try state.machine.requireBytes(epoch)
        guard let blob = state.blob else { throw .invalidState("the bytes are not available any more") }
        return (blob, state)
    }

    /// Begins staging: bytes are written to their position, but do not count as received before ``commitStaged()``. A
    /// take-over, a release or a crash discards them.
    ///
    /// - Parameter digests: the digests that are calculated while the bytes arrive.
    package func beginStaging(digests: Set<DigestAlgorithm> = []) throws(StoreError) {
        try upload.update { (state) throws(StoreError) in
            try state.machine.beginStaging(as: epoch)
            state.stagedDigests = DigestTracker(digests, base: state.machine.received)
        }
    }

    /// Counts the staged bytes as received.
    package func commitStaged() throws(StoreError) {
        try upload.update { (state) throws(StoreError) in
            try state.machine.commitStaged(as: epoch)
            state.stagedDigests = nil
        }
    }

    /// Discards the staged bytes.
    package func discardStaged() {
        upload.update { $0.machine.discardStaged(as: epoch) }
    }

    /// Returns the digest of the bytes staged so far.
    package func stagedDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        let (blob, state) = try bytes()
        guard let tracker = state.stagedDigests else { throw .invalidState("nothing is staged") }
        do throws(Errno) {
            return try tracker.digest(algorithm, of: blob, to: state.machine.written)
        } catch {
            // If the upload was taken over, its staged bytes were removed.
            if let refusal = upload.machine.refusal(of: epoch) { throw refusal }
            throw .failure(error, during: "compute the digest of an upload")
        }
    }

    /// Returns the digest of all received bytes. Bytes that were digested when they arrived are not read again.
    package func representationDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        let (blob, state) = try bytes()
        return try translating("compute the digest of an upload") { () throws(Errno) in
            try state.digests.digest(algorithm, of: blob, to: state.machine.received)
        }
    }
}
