import Foundation
import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

/// An upload that resumes where it was interrupted.
public final class Upload: DrivenTransfer {
    let parts: TransferParts<UploadOperation>

    init(_ parts: TransferParts<UploadOperation>) { self.parts = parts }

    /// Starts the upload and waits for a successful response of its target. If the task that waits is canceled, the
    /// upload is paused.
    /// - Throws: ``TransferError``, with the complete response if the target rejected the upload (4xx or 5xx);
    ///   `CancellationError` if the cancellation of the waiting task ended the upload. If the upload can be resumed,
    ///   ``Transfer/resumeData`` is the data for that.
    public func value() async throws -> UploadResult {
        let result = try await response()
        if let rejection = UploadOperation.rejection(of: result) { throw rejection }
        return result
    }

    /// Starts the upload and waits for the final response of its target, whatever its status is.
    /// - Throws: the errors of ``value()``, except those for a final response that rejects the complete upload.
    public func response() async throws -> UploadResult { try await cancellableOutcome() }

    /// Runs the upload in the current task, which must not be canceled, and waits for the final response as
    /// ``response()`` does. An upload that has started already is not run again.
    /// - Parameter observer: called with each event of the upload that this call runs, in order. It must not wait, or use
    ///   the events of the upload.
    package func outcome(
        _ observer: @escaping @Sendable (TransferEvent) -> Void = { _ in }
    ) async throws(TransferError) -> UploadResult { try await runHere(observer) }

    /// Stops the upload permanently, and waits until all of its work has ended. It cannot be resumed
    /// afterwards, unless the server does not confirm the deletion.
    /// - Parameter shouldDelete: whether the upload resource is deleted on the server, as by ``Transfer/cancel()``.
    ///   If `false`, no request is sent, the resource remains on the server until its lifetime has passed, and the call
    ///   has no effect on an upload that has already ended.
    public func cancel(deletingUpload shouldDelete: Bool) async { await cancel(deleting: shouldDelete) }

    /// Deletes only the upload resource. It is no error if the resource no longer exists.
    /// - Returns: whether the server confirmed the deletion.
    func discard() async throws(TransferError) -> Bool {
        control.requestStop(.cancel(deleting: true))
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return true }
        if error.code == .gone { return false }
        if error.code != .cancelled { throw error }
        return error.status?.isSuccessful == true
    }
}

/// The result of an upload: the response of the target resource, whatever its status is.
public struct UploadResult: Sendable, Hashable {
    /// The status of the final response, or of the last response if the final one was lost; `nil` if there was no
    /// response.
    public var status: Status?
    /// The fields of the response whose status is ``status``.
    public var fields: Fields
    /// The content of the final response: at most its first 1 MiB.
    public var content: [UInt8]
    /// The absolute URI in `Location` of the final response, or else in `Content-Location`. A field is skipped if it has
    /// several lines, is no URI reference, or names the upload resource. `nil` if neither remains.
    public var location: String?
    /// Whether the server has all bytes, but its final response was lost.
    public var isResponseLost: Bool
    /// The URI of the upload resource, a secret; `nil` if the server created none.
    public var uploadURI: String?
    /// The number of bytes of content that all requests of this run have passed to the kernel.
    public var sent: Int64
    /// The number of bytes that the server has acknowledged; all bytes if the upload is complete.
    public var acknowledged: Int64
    /// The number of requests in this run, of any method.
    public var requests: Int

    /// Creates a result with these values, for the tests of a program.
    public init(
        status: Status?, fields: Fields, content: [UInt8], location: String?, isResponseLost: Bool, uploadURI: String?,
        sent: Int64, acknowledged: Int64, requests: Int
    ) {
        self.status = status
        self.fields = fields
        self.content = content
        self.location = location
        self.isResponseLost = isResponseLost
        self.uploadURI = uploadURI
        self.sent = sent
        self.acknowledged = acknowledged
        self.requests = requests
    }
}

extension UploadResult {
    /// - Parameters:
    ///   - content: the content of the final response.
    ///   - lastURI: the URI of the last request, against which references are resolved.
    init(
        _ outcome: UploadOutcome, content: [UInt8], from lastURI: RequestURI?, uploadURI: String?, sent: Int64,
        acknowledged: Int64, requests: Int
    ) {
        let head = outcome.response
        var location: String?
        if let lastURI {
            let names = [head.fields.values("Location"), head.fields.values("Content-Location")]
            location =
                names.compactMap { $0.count == 1 ? lastURI.resolving($0[0])?.text : nil }.first { $0 != uploadURI }
        }
        self.init(
            status: head.status, fields: head.fields, content: content, location: location,
            isResponseLost: outcome.isResponseLost, uploadURI: uploadURI, sent: sent, acknowledged: acknowledged,
            requests: requests)
    }
}

extension UploadOutcome {
    /// Whether the server has received all content. It may not have, if the target sent an unsuccessful response.
    var isComplete: Bool { isResponseLost || response.status.isSuccessful }
}
