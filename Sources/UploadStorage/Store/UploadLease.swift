import HTTPSemantics
import ResumableUpload
import Synchronization

/// The right to write to one upload, until somebody takes it over.
///
/// One thread uses it; ``isCurrent`` and the offsets can be read, and the right taken away, from any. Every operation
/// fails with ``StoreError/superseded`` once it is, before anything is changed.
package final class UploadLease: Sendable {
    private let upload: OpenUpload
    private let epoch: Int64
    private let isReleased = Atomic(false)
    /// The upload when the lease was given.
    package let record: UploadRecord

    init(_ upload: OpenUpload, epoch: Int64, record: UploadRecord) {
        self.upload = upload
        self.epoch = epoch
        self.record = record
    }

    deinit { release() }

    /// Nil for bytes without an upload resource.
    package var id: UploadID? { upload.isTransient ? nil : upload.id }

    /// Bytes in place, contiguous from 0; staged ones are not among them.
    package var received: Int64 { upload.receivedMirror.load(ordering: .acquiring) }

    /// Bytes that are durable: the offset that may be told to the client.
    package var acknowledged: Int64 { upload.durableMirror.load(ordering: .acquiring) }

    /// Whether nobody has taken the upload over.
    package var isCurrent: Bool { upload.epochMirror.load(ordering: .acquiring) == epoch }

    /// Sets what is called once, on the other one's thread, when the upload is taken over, and at once if it has been.
    /// It must not wait for this lease's thread.
    package func onRevocation(_ closure: @escaping @Sendable () -> Void) {
        upload.onRevocation(closure, as: epoch)
    }

    /// Puts bytes behind those that are in place. After an error, a prefix of them may count; see ``received``.
    ///
    /// - Parameter completes: whether these are the last bytes; ``beginProcessing(marksDurably:)`` or ``endProcessing()`` has
    ///   to follow.
    package func append(_ bytes: UnsafeRawBufferPointer, completes: Bool = false) throws(StoreError) {
        try upload.append(bytes, completes: completes, as: epoch)
    }

    /// Has everything received made durable on another thread; cheap, and nothing new while that is under way.
    package func startAcknowledging() { upload.startAcknowledging(as: epoch) }

    /// Returns once everything received by now is durable, with the offset.
    ///
    /// If the bytes cannot be synchronized, the lease is lost: what comes next starts from the last durable offset.
    package func acknowledge() throws(StoreError) -> Int64 { try upload.acknowledge(as: epoch) }

    /// As ``acknowledge()``, but when another one takes the upload over meanwhile, it waits for the bytes all the same:
    /// those who only ask for the offset need not ask again because somebody else does.
    package func acknowledgeTaken() throws(StoreError) -> Int64 {
        try upload.acknowledge(as: epoch, outlivesLease: true)
    }

    /// Sets the length of the representation, once; durable when ``acknowledge()`` returns.
    package func setLength(_ length: Int64) throws(StoreError) { try upload.setLength(length, as: epoch) }

    /// From here on bytes are put in place, but neither received nor acknowledged before ``commitStaged()``. A take-over,
    /// a release or a crash drops them.
    ///
    /// - Parameter digests: those that run while the bytes arrive.
    package func beginStaging(digests: Set<DigestAlgorithm> = []) throws(StoreError) {
        try upload.beginStaging(digests, as: epoch)
    }

    package func commitStaged() throws(StoreError) { try upload.commitStaged(as: epoch) }

    package func discardStaged() { upload.discardStaged(as: epoch) }

    /// The digest of the staged bytes so far.
    package func stagedDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        try upload.stagedDigest(algorithm, as: epoch)
    }

    /// The digest of all received bytes. Those that have been taken in while they arrived are not read again.
    package func representationDigest(_ algorithm: DigestAlgorithm) throws(StoreError) -> [UInt8] {
        try upload.representationDigest(algorithm, as: epoch)
    }

    /// Makes the upload unusable for good, durably, and frees its bytes.
    package func invalidate(reason: String) throws(StoreError) {
        try upload.invalidate(reason: reason, as: epoch)
    }

    /// Acknowledges everything and begins the target's work: from here on nobody takes the upload over, but waits.
    ///
    /// - Parameter marksDurably: for a target that must not run twice; a crash from here on leads to
    ///   ``StoreConfiguration/interruptedResponse``, and so does a release without a response.
    package func beginProcessing(marksDurably: Bool) throws(StoreError) {
        try upload.beginProcessing(marksDurably: marksDurably, as: epoch)
    }

    /// The target did not run; the upload goes on receiving.
    package func endProcessing() { upload.endProcessing(as: epoch) }

    /// Stores the final response durably and frees the bytes. Also while bytes are still missing.
    package func complete(with response: FinalResponse) throws(StoreError) {
        try upload.complete(with: response, as: epoch)
    }

    /// Makes the bytes a published file and stores the final response, or stores the refusal of the condition.
    ///
    /// `targetIsDirectory`, `parentIsFile` and `noFreeName` leave the upload in processing, for the caller to complete or
    /// to end. After `io` the lease is lost if the publication was decided already; a take-over brings it to its end.
    package func publish(_ publication: Publication) throws(StoreError) -> FinalResponse {
        try upload.publish(publication, as: epoch)
    }

    /// Reads received bytes; fewer than the buffer holds only at their end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try upload.read(into: buffer, at: offset, as: epoch)
    }

    /// Ends the lease. What has been received is acknowledged; bytes without an upload resource vanish.
    package func release() {
        if isReleased.exchange(true, ordering: .acquiringAndReleasing) { return }
        upload.release(as: epoch)
    }
}
