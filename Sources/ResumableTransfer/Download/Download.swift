import Foundation
import HTTPSemantics
import SystemCalls

/// A download that resumes where it was interrupted.
///
/// The bytes are written to a partial file. When the file is complete, it is compared with the digest that the server
/// sent (`Repr-Digest`, RFC 9530), if there is one. Then it gets its final name in one step, and replaces a file that
/// had the name before.
public final class Download: DrivenTransfer {
    let parts: TransferParts<FileDownloadOperation>

    init(_ parts: TransferParts<FileDownloadOperation>) { self.parts = parts }

    /// Starts the download and waits for the complete file. If the task that waits is canceled, the download is paused.
    /// - Throws: ``TransferError``; `CancellationError` if the cancellation of the waiting task ended the download.
    ///   If the download can be resumed, ``Transfer/resumeData`` is the data for that.
    public func value() async throws -> DownloadResult { try await cancellableOutcome() }

    /// Runs the download in the current task, which must not be canceled, and waits for the complete file as ``value()``
    /// does. A download that has started already is not run again.
    /// - Parameter observer: called with each event of the download that this call runs, in order. It must not wait, or
    ///   use the events of the download.
    package func outcome(
        _ observer: @escaping @Sendable (TransferEvent) -> Void = { _ in }
    ) async throws(TransferError) -> DownloadResult { try await runHere(observer) }

    /// Stops the download permanently, and waits until all of its work has ended. It cannot be resumed afterwards.
    /// - Parameter shouldDelete: whether the partial file is deleted, as by ``Transfer/cancel()``. If
    ///   `false`, the partial file remains, and the call has no effect on a download that has already ended.
    public func cancel(deletingPartialFile shouldDelete: Bool) async { await cancel(deleting: shouldDelete) }
}

/// The result of a complete download.
public struct DownloadResult: Sendable, Hashable {
    /// The status of the response with the last bytes: 200, 203, 206 if the download was resumed, or 416 if all bytes
    /// were received before.
    public var status: Status
    /// The fields of the response whose status is ``status``.
    public var fields: Fields
    /// The content coding of the bytes in the file, `gzip` for example; `nil`: none. The bytes are stored as they were
    /// received.
    public var contentCoding: String?
    /// The absolute path of the complete file.
    public var path: String { file.repairedText }
    /// The URL of the complete file.
    public var url: URL { file.fileURL }
    /// The path ``path`` as bytes, which need not be UTF-8.
    package var file: FilePath
    /// The size of the complete file in bytes.
    public var size: Int64
    /// The number of bytes of content that were received in this run.
    public var received: Int64
    /// The number of requests in this run.
    public var requests: Int

    /// Creates a result with these values, for the tests of a program.
    public init(
        status: Status, fields: Fields, contentCoding: String? = nil, path: String, size: Int64, received: Int64,
        requests: Int
    ) {
        self.init(
            status: status, fields: fields, contentCoding: contentCoding, file: FilePath(path), size: size,
            received: received, requests: requests)
    }

    init(
        status: Status, fields: Fields, contentCoding: String?, file: FilePath, size: Int64, received: Int64,
        requests: Int
    ) {
        self.status = status
        self.fields = fields
        self.contentCoding = contentCoding
        self.file = file
        self.size = size
        self.received = received
        self.requests = requests
    }
}
