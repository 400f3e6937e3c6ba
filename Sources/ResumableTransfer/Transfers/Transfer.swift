import Foundation

/// One upload or download on its way.
///
/// Nothing is sent before ``start()`` is called, the result is awaited or ``events`` is read.
public protocol Transfer: AnyObject, Sendable {
    /// Starts the transfer; without effect once it has started.
    func start()

    /// Stops the transfer in a way that it can be resumed, and waits until nothing of it is running any more.
    /// - Returns: what it can be resumed with, once; `nil` if nothing can be resumed. Of a transfer that had failed
    ///   before it is the data of the error.
    func pause() async -> ResumeData?

    /// Ends the transfer and waits until nothing of it is running any more.
    /// - Parameter deletingUpload: whether the upload resource is deleted from the server, or the partial file of a
    ///   download from the disk.
    func cancel(deletingUpload: Bool) async

    /// What can be resumed right now; `nil` if nothing can be. It carries no ticket: the caller ensures that at most one
    /// transfer at a time resumes it.
    var checkpoint: ResumeData? { get }

    /// A new stream of events, which starts the transfer. It begins with the current state of the transfer and ends with
    /// `completed` or `failed`.
    var events: AsyncStream<TransferEvent> { get }

    /// Bytes done out of the total. Cancelling or pausing it pauses the transfer.
    var progress: Progress { get }
}
