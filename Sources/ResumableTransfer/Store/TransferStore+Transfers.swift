import HTTPTransport
import Foundation
import SystemCalls

extension TransferStore {
    /// Prepares the upload of the entry `name`, or a new upload with that name if there is no such entry.
    ///
    /// The entry is locked until the upload has ended, or until the returned object is released. If the server no
    /// longer has the upload of the entry, ``Upload/value()`` throws `gone` and the entry is removed: the next call
    /// with this name begins a new upload.
    /// - Parameters:
    ///   - request: the request that creates the upload. Pass the same request whenever the program starts. If the
    ///     upload is resumed, only fields that belong in every request are sent, such as `Authorization`. Fields that
    ///     describe the representation (`Content-Type` and others) and conditions (`If-None-Match`, `If-Match`) are
    ///     sent only when the upload is created. The server evaluates a condition then; Onward evaluates it again when
    ///     it publishes the file. If a condition is not fulfilled, the upload ends with `preconditionFailed` and the
    ///     entry is removed.
    ///   - source: the bytes to upload; the same as before if the upload is resumed.
    ///   - name: the name of the entry, at most 240 bytes. Any characters are allowed.
    ///   - userInfo: values to store with the entry, without secrets. They replace the values that are stored.
    /// - Throws: ``TransferError`` with one of the codes `inUse` (another transfer or process is running the entry),
    ///   `sourceChanged`, `invalidRequest` (the entry has another kind, method or URI), `resumeDataInvalid` (the entry
    ///   is damaged), `resumeDataUsed` and `storageUnusable`. The entry is kept.
    public func upload(
        _ request: TransferRequest, from source: any UploadSource, as name: String, userInfo: [String: String] = [:]
    ) async throws(TransferError) -> Upload {
        try await BlockingWork.run { () throws(TransferError) in
            let keeper = try lock(name, userInfo)
            guard let data = try keeper.load() else { return client.upload(request, from: source, store: keeper) }
            try check(data, begins: request, kind: .upload, name)
            return try client.resumeUpload(data, from: source, request: request, store: keeper)
        }
    }

    /// Prepares the upload of a file as the entry `name`, or resumes the upload of that entry. The request is that of
    /// ``TransferClient/upload(file:to:fields:)-(String,_,_)``.
    /// - Parameters:
    ///   - path: the path of a regular file.
    ///   - uri: an absolute http or https URI.
    ///   - fields: further fields of the request, such as `Content-Type`.
    ///   - name: the name of the entry, at most 240 bytes. Any characters are allowed.
    ///   - userInfo: values to store with the entry, without secrets. They replace the values that are stored.
    /// - Throws: as ``upload(_:from:as:userInfo:)``, or `noSuchSource` or `sourceUnavailable`.
    public func upload(
        file path: String, to uri: String, fields: Fields = [:], as name: String, userInfo: [String: String] = [:]
    ) async throws(TransferError) -> Upload {
        try await upload(FilePath(path), to: uri, fields, as: name, userInfo)
    }

    /// Prepares the upload of a file as the entry `name`, or resumes the upload of that entry. The request is that of
    /// ``TransferClient/upload(file:to:fields:)-(URL,_,_)``.
    /// - Parameters:
    ///   - file: the URL of a regular file.
    ///   - url: an absolute http or https URL.
    ///   - fields: further fields of the request, such as `Content-Type`.
    ///   - name: the name of the entry, at most 240 bytes. Any characters are allowed.
    ///   - userInfo: values to store with the entry, without secrets. They replace the values that are stored.
    /// - Throws: as ``upload(_:from:as:userInfo:)``, or `noSuchSource` or `sourceUnavailable`.
    public func upload(
        file: URL, to url: URL, fields: Fields = [:], as name: String, userInfo: [String: String] = [:]
    ) async throws(TransferError) -> Upload {
        guard file.isFileURL else { throw TransferError(.noSuchSource, "The source must be a file URL.") }
        return try await upload(FilePath(file), to: url.absoluteString, fields, as: name, userInfo)
    }

    private func upload(
        _ path: FilePath, to uri: String, _ fields: Fields, as name: String, _ userInfo: [String: String]
    ) async throws(TransferError) -> Upload {
        let source = try await BlockingWork.run { () throws(TransferError) in try FileSource(path) }
        return try await upload(
            TransferRequest(uploading: source.file.lastComponent, to: uri, fields: fields), from: source, as: name,
            userInfo: userInfo)
    }

    /// Prepares the download of the entry `name`, or a new download with that name if there is no such entry.
    ///
    /// The entry is locked until the download has ended, or until the returned object is released.
    /// - Parameters:
    ///   - request: a GET request, as for ``TransferClient/download(_:to:)``.
    ///   - destination: the file that is created or replaced when the download is complete; the same as before if the
    ///     download is resumed.
    ///   - name: the name of the entry, at most 240 bytes. Any characters are allowed.
    ///   - userInfo: values to store with the entry, without secrets. They replace the values that are stored.
    /// - Throws: ``TransferError`` with one of the codes `inUse` (another transfer or process is running the entry),
    ///   `invalidRequest` (the entry has another kind, URI or destination), `resumeDataInvalid` (the entry is damaged),
    ///   `resumeDataUsed` and `storageUnusable`. The entry is kept.
    public func download(
        _ request: TransferRequest, to destination: DownloadDestination, as name: String,
        userInfo: [String: String] = [:]
    ) async throws(TransferError) -> Download {
        try await BlockingWork.run { () throws(TransferError) in
            let keeper = try lock(name, userInfo)
            guard let data = try keeper.load() else { return client.download(request, to: destination, store: keeper) }
            try check(data, begins: request, kind: .download, name)
            if case .download(let checkpoint) = data.record.content,
                DownloadDestination(checkpoint) != TransferPlan(request, to: destination).input
            {
                throw TransferError(.invalidRequest, "The store has a download '\(name)' with another destination.")
            }
            return try client.resumeDownload(data, request: request, store: keeper)
        }
    }

    /// Prepares the transfer of an entry, which is locked until the transfer has ended, or until the returned object is
    /// released. The entry is read again.
    /// - Parameters:
    ///   - entry: an entry of this store.
    ///   - source: the same bytes as before for an upload whose source was not a file; `nil`: the file of the entry.
    ///   - request: replaces the request of the entry; its fields are sent with all further requests.
    /// - Returns: an ``Upload`` or a ``Download``.
    /// - Throws: ``TransferError`` with one of the codes `inUse` (another transfer or process is running the entry),
    ///   `resumeDataInvalid` (the entry is damaged), `resumeDataUsed` (the entry no longer exists), `noSuchSource`,
    ///   `sourceChanged` and `storageUnusable`. The entry is kept.
    public func resume(
        _ entry: Entry, from source: (any UploadSource)? = nil, request: TransferRequest? = nil
    ) async throws(TransferError) -> any Transfer {
        try await BlockingWork.run { () throws(TransferError) -> any Transfer in
            let keeper = try lock(entry)
            let data = try loaded(entry, keeper)
            return switch data.kind {
            case .upload: try client.resumeUpload(data, from: source, request: request, store: keeper)
            case .download: try client.resumeDownload(data, request: request, store: keeper)
            }
        }
    }

    /// Removes an entry, and deletes what the transfer has left: the upload resource on the server, or the partial file.
    /// A damaged entry is only removed.
    /// - Parameters:
    ///   - entry: an entry of this store.
    ///   - request: replaces the request of the entry; its fields and the user in its URI authorize the deletion of an
    ///     upload.
    /// - Returns: whether the deletion is confirmed; `false`: the entry was damaged, or the upload does not exist on the
    ///   server, or the credentials of the request are those of another user.
    /// - Throws: ``TransferError``: `inUse` if another transfer or process is running the entry, `resumeDataUsed` if it
    ///   no longer exists, or the error of the deletion. The entry is kept.
    @discardableResult
    public func discard(_ entry: Entry, request: TransferRequest? = nil) async throws(TransferError) -> Bool {
        let (keeper, data) = try await BlockingWork.run { () throws(TransferError) -> (EntryKeeper, ResumeData?) in
            let keeper = try lock(entry)
            do throws(TransferError) {
                return (keeper, try loaded(entry, keeper))
            } catch {
                guard error.code == .resumeDataInvalid else { throw error }
                keeper.remove()
                return (keeper, nil)
            }
        }
        defer { keeper.release() }
        guard let data else { return false }
        let isDeleted = try await client.discard(data, request: request)
        await BlockingWork.run { keeper.remove() }
        return isDeleted
    }

    // MARK: Checks

    private func lock(_ name: String, _ userInfo: [String: String]) throws(TransferError) -> EntryKeeper {
        try EntryKeeper(Self.stem(of: name), in: self, userInfo: userInfo)
    }

    private func lock(_ entry: Entry) throws(TransferError) -> EntryKeeper {
        try EntryKeeper(entry.stem, in: self, userInfo: nil)
    }

    private func loaded(_ entry: Entry, _ keeper: EntryKeeper) throws(TransferError) -> ResumeData {
        guard let data = try keeper.load() else {
            throw TransferError(.resumeDataUsed, "The transfer '\(entry.name)' is no longer in the store.")
        }
        return data
    }

    /// Throws if the entry `name` was begun with another request. The queries may differ, because those of signed URIs
    /// do.
    private func check(
        _ data: ResumeData, begins request: TransferRequest, kind: ResumeData.Kind, _ name: String
    ) throws(TransferError) {
        func withoutQuery(_ uri: String) -> Substring? { RequestURI(uri)?.text.prefix { $0 != "?" } }
        let kept = data.request
        guard data.kind == kind, kept.method == request.method, withoutQuery(kept.uri) == withoutQuery(request.uri)
        else {
            throw TransferError(
                .invalidRequest, "The store has another transfer '\(name)': \(data). Discard it, or use another name.")
        }
    }
}
