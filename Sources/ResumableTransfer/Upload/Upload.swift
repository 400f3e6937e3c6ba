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

    /// The same as ``response()``, but throws a transfer error even if the waiting task is canceled.
    package func outcome() async throws(TransferError) -> UploadResult { try await startedOutcome() }

    /// Stops the upload permanently, and waits until all of its work has ended. It cannot be resumed
    /// afterwards, unless the server does not confirm the deletion.
    /// - Parameter deletingUpload: whether the upload resource is deleted on the server, as by ``Transfer/cancel()``.
    ///   If `false`, no request is sent, the resource remains on the server until its lifetime has passed, and the call
    ///   has no effect on an upload that has already ended.
    public func cancel(deletingUpload: Bool) async { await cancel(deleting: deletingUpload) }

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
    /// The absolute URI in `Location` of the final response; without that field, the one in `Content-Location`; `nil`
    /// if it has neither field.
    public var location: String?
    /// Whether the server has all bytes, but its final response was lost.
    public var isResponseLost: Bool
    /// The URI of the upload resource, a secret; `nil` if the server created none.
    public var uploadURI: String?
    /// The number of bytes of content that all requests of this run have passed to the kernel.
    public var sent: Int64
    /// The number of bytes that the server has received.
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
    ///   - content: that of the final response.
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

extension TransferClient {
    /// Prepares an upload of all bytes of `source`. As with every function that prepares a transfer, nothing is sent
    /// before the transfer is started, its result is awaited, or its events are read.
    /// - Parameters:
    ///   - request: the target; POST unless another method than GET is chosen.
    ///   - source: the representation.
    public func upload(_ request: TransferRequest, from source: any UploadSource) -> Upload {
        upload(request, from: source, store: nil)
    }

    /// Prepares an upload of bytes in memory.
    /// - Parameters:
    ///   - request: the target; POST unless another method than GET is chosen.
    ///   - data: the representation.
    public func upload(_ request: TransferRequest, from data: Data) -> Upload {
        upload(request, from: DataSource(data))
    }

    /// Prepares an upload of the bytes of a sequence, whose number need not be known. As every upload, it is resumed
    /// after an interruption. To resume it after a pause as well, create a ``SequenceSource`` for the bytes.
    /// - Parameters:
    ///   - request: the target; POST unless another method than GET is chosen.
    ///   - bytes: iterated once. An error that it throws ends the upload with `sourceUnavailable`, and is its
    ///     ``TransferError/underlying`` error.
    public func upload<Bytes: AsyncSequence & Sendable>(
        _ request: TransferRequest, from bytes: Bytes
    ) -> Upload where Bytes.Element == UInt8 {
        upload(request, from: SequenceSource(bytes, directory: configuration.storageDirectory))
    }

    /// Prepares an upload of the bytes of a sequence of chunks, whose number need not be known. As every upload, it is
    /// resumed after an interruption. To resume it after a pause as well, create a ``SequenceSource`` for the chunks.
    /// - Parameters:
    ///   - request: the target; POST unless another method than GET is chosen.
    ///   - chunks: chunks of any size, iterated once. An error that it throws ends the upload with `sourceUnavailable`,
    ///     and is its ``TransferError/underlying`` error.
    public func upload<Chunks: AsyncSequence & Sendable>(
        _ request: TransferRequest, from chunks: Chunks
    ) -> Upload where Chunks.Element: Collection<UInt8> {
        upload(request, from: SequenceSource(chunks, directory: configuration.storageDirectory))
    }

    /// Prepares an upload of all bytes of `source`, with its own store for checkpoints and its own handler for
    /// exchanges.
    package func upload(
        _ request: TransferRequest, from source: any UploadSource, store: (any CheckpointStore)?,
        handler: (any ExchangeHandler)? = nil
    ) -> Upload {
        var plan = TransferPlan(request, from: source)
        plan.store = store
        plan.handler = handler
        return Upload(TransferParts(self, plan))
    }

    /// Prepares an upload that sends the remaining bytes.
    ///
    /// The data stays valid until data of a later pause, error or checkpoint of the same upload has been used, or until
    /// the upload has ended. An upload that starts while another one runs with the same data, in any process, ends with
    /// `resumeDataUsed`.
    /// - Parameters:
    ///   - data: resume data of an upload.
    ///   - source: a source with the same bytes as before; `nil`: the file that the data names, if it belongs to the
    ///     user or to root.
    ///   - request: replaces the request in the data; its fields are sent with all further requests.
    /// - Throws: ``TransferError`` with one of the codes `resumeDataInvalid`, `resumeDataUsed`, `noSuchSource` and
    ///   `sourceChanged`. After all of them except `resumeDataUsed` the data can still be used.
    public func resumeUpload(
        _ data: ResumeData, from source: (any UploadSource)? = nil, request: TransferRequest? = nil
    ) throws(TransferError) -> Upload {
        try resumeUpload(data, from: source, request: request, store: nil)
    }

    /// Prepares an upload that sends the remaining bytes, with its own store for checkpoints and its own handler for
    /// exchanges.
    package func resumeUpload(
        _ data: ResumeData, from source: (any UploadSource)?, request: TransferRequest?, store: (any CheckpointStore)?,
        handler: (any ExchangeHandler)? = nil
    ) throws(TransferError) -> Upload {
        try storage.requireUnused(data)
        var plan = try TransferPlan(resuming: data, source: source, request: request)
        plan.store = store
        plan.handler = handler
        return Upload(TransferParts(self, plan))
    }

    /// Prepares an upload of a file: by PUT if `uri` names a resource, and by POST with the name of the file
    /// (`Content-Disposition`) if its path ends with a slash and so names a collection.
    /// - Parameters:
    ///   - path: the path of a regular file.
    ///   - uri: an absolute http or https URI.
    ///   - fields: further fields of the request, such as `Content-Type`.
    /// - Throws: ``TransferError`` with the code `noSuchSource` or `sourceUnavailable`.
    public func upload(file path: String, to uri: String, fields: Fields = [:]) throws(TransferError) -> Upload {
        let source = try FileSource(path: path)
        return upload(TransferRequest(uploading: source.file.lastComponent, to: uri, fields: fields), from: source)
    }

    /// Prepares an upload of a file: by PUT if `url` names a resource, and by POST with the name of the file
    /// (`Content-Disposition`) if its path ends with a slash and so names a collection.
    /// - Parameters:
    ///   - file: the URL of a regular file.
    ///   - url: an absolute http or https URL.
    ///   - fields: further fields of the request, such as `Content-Type`.
    /// - Throws: ``TransferError`` with the code `noSuchSource` or `sourceUnavailable`.
    public func upload(file: URL, to url: URL, fields: Fields = [:]) throws(TransferError) -> Upload {
        let source = try FileSource(url: file)
        return upload(
            TransferRequest(uploading: source.file.lastComponent, to: url.absoluteString, fields: fields), from: source)
    }
}

extension TransferRequest {
    /// The request that uploads a file: PUT to a resource; POST to a collection, with the name of the file unless
    /// `fields` have a `Content-Disposition`.
    package init(uploading name: FilePath, to uri: String, method: Method? = nil, fields: Fields) {
        let path = URLComponents(string: uri)?.percentEncodedPath ?? ""
        let isCollection = path.isEmpty || path.hasSuffix("/")
        var fields = fields
        if isCollection, !fields.contains("Content-Disposition") {
            let text = name.escaped { CollectionOfOne($0).percentEncoded { _ in false } }
            fields.append("Content-Disposition", ContentDisposition.serialized(type: "inline", filename: text))
        }
        self.init(uri, method: method ?? (isCollection ? .post : .put), fields: fields)
    }
}
