import Foundation
import HTTPSemantics
import HTTPTransport
import SystemCalls

extension TransferClient {
    /// Prepares an upload of all bytes of `source`. As with every function that prepares a transfer, nothing is sent
    /// before the transfer is started, canceled or awaited, or its events are requested.
    /// - Parameters:
    ///   - request: the request to the target. GET, the default method of a ``TransferRequest``, is sent as POST.
    ///   - source: the representation.
    public func upload(_ request: TransferRequest, from source: any UploadSource) -> Upload {
        upload(request, from: source, store: nil)
    }

    /// Prepares an upload of bytes in memory.
    /// - Parameters:
    ///   - request: the request to the target. GET, the default method of a ``TransferRequest``, is sent as POST.
    ///   - data: the representation.
    public func upload(_ request: TransferRequest, from data: Data) -> Upload {
        upload(request, from: DataSource(data))
    }

    /// Prepares an upload of the bytes of a sequence, whose number need not be known. As every upload, it is resumed
    /// after an interruption. To resume it after a pause as well, create a ``SequenceSource`` for the bytes.
    /// - Parameters:
    ///   - request: the request to the target. GET, the default method of a ``TransferRequest``, is sent as POST.
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
    ///   - request: the request to the target. GET, the default method of a ``TransferRequest``, is sent as POST.
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
        let plan = TransferPlan(request, target: parsed(request.uri), from: source)
        return Upload(TransferParts(self, plan, store: store, handler: handler))
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
        let plan = try TransferPlan(resuming: data, source: source, request: request)
        return Upload(TransferParts(self, plan, store: store, handler: handler))
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
    /// The request that uploads a file to the URI of a resource or, if its path ends with a slash, of a collection.
    init(uploading name: FilePath, to uri: String, fields: Fields) {
        let path = URLComponents(string: uri)?.percentEncodedPath ?? ""
        self.init(uploading: name, to: uri, isCollection: path.isEmpty || path.hasSuffix("/"), fields: fields)
    }

    /// The request that uploads a file: PUT to a resource; POST to a collection, with the name of the file unless
    /// `fields` have a `Content-Disposition`.
    package init(
        uploading name: FilePath, to uri: String, isCollection: Bool, method: Method? = nil, fields: Fields
    ) {
        var fields = fields
        if isCollection, !fields.contains("Content-Disposition") {
            let text = name.escaped { CollectionOfOne($0).percentEncoded { _ in false } }
            fields.append("Content-Disposition", ContentDisposition(type: "inline", filename: text).serialized)
        }
        self.init(uri, method: method ?? (isCollection ? .post : .put), fields: fields)
    }
}
