import Foundation
import HTTPSemantics
import SystemCalls

extension TransferClient {
    /// Prepares a download to `destination`.
    /// - Parameters:
    ///   - request: a GET request. If it has a field that chooses a part (`Range`, `If-Range`), the download fails with
    ///     `invalidRequest`. `Accept-Encoding: identity` is added unless the request has that field, because a part of
    ///     a coded representation is not a part of the file.
    ///   - destination: the file that is created or replaced when the download is complete.
    public func download(_ request: TransferRequest, to destination: DownloadDestination) -> Download {
        download(request, to: destination, store: nil)
    }

    /// Prepares a download to a file.
    /// - Parameters:
    ///   - uri: an absolute http or https URI. For any other text the download fails with `invalidRequest`.
    ///   - path: the path of the file that is created or replaced when the download is complete. A relative path begins
    ///     at the working directory.
    ///   - fields: further fields of the request.
    public func download(from uri: String, to path: String, fields: Fields = [:]) -> Download {
        download(TransferRequest(uri, fields: fields), to: .file(path))
    }

    /// Prepares a download to a file.
    /// - Parameters:
    ///   - url: an absolute http or https URL. For any other URL the download fails with `invalidRequest`.
    ///   - file: the file URL of the file that is created or replaced when the download is complete.
    ///   - fields: further fields of the request.
    public func download(from url: URL, to file: URL, fields: Fields = [:]) -> Download {
        download(TransferRequest(url, fields: fields), to: .file(file))
    }

    /// Prepares a download to `destination`, with its own store for checkpoints and its own handler for exchanges.
    package func download(
        _ request: TransferRequest, to destination: DownloadDestination, store: (any CheckpointStore)?,
        handler: (any ExchangeHandler)? = nil
    ) -> Download {
        Download(TransferParts(self, TransferPlan(request, to: destination), store: store, handler: handler))
    }

    /// Prepares a download that receives the missing bytes. This call does not use up the data: it stays valid until
    /// data of a later pause, error or checkpoint of the same download has been used, or until the download has ended.
    /// If the bytes that were received cannot be used any more, everything is received again.
    /// - Parameters:
    ///   - data: the resume data of a download.
    ///   - request: replaces the request in the data, for example for the same representation at another URI.
    /// - Throws: `resumeDataInvalid`, `resumeDataUsed`. A download that starts while another one runs with the same
    ///   data, in any process, ends with `resumeDataUsed`.
    public func resumeDownload(
        _ data: ResumeData, request: TransferRequest? = nil
    ) throws(TransferError) -> Download {
        try resumeDownload(data, request: request, store: nil)
    }

    /// Prepares a download that receives the missing bytes, with its own store for checkpoints and its own handler for
    /// exchanges.
    package func resumeDownload(
        _ data: ResumeData, request: TransferRequest?, store: (any CheckpointStore)?,
        handler: (any ExchangeHandler)? = nil
    ) throws(TransferError) -> Download {
        let plan = try TransferPlan<FileDownloadOperation>(resuming: data, request: request)
        try storage.requireUnused(data)
        return Download(TransferParts(self, plan, store: store, handler: handler))
    }
}

extension TransferStorage {
    /// Removes the partial file of a download.
    /// - Throws: `resumeDataUsed` if another transfer is writing the file; `destinationUnusable` if the file cannot be
    ///   removed.
    func discard(_ checkpoint: DownloadCheckpoint) throws(TransferError) {
        guard let location = try PartialFileLocation.open(DownloadDestination(checkpoint), storage: self) else {
            return
        }
        let isDone: Bool
        do throws(Errno) {
            var areDone: [Bool] = []
            for checkpoint in [checkpoint] + (checkpoint.earlier ?? []) {
                areDone.append(try PartialFile.discard(checkpoint, in: location))
            }
            isDone = !areDone.contains(false)
        } catch {
            throw TransferError(.destinationUnusable, "The partial file cannot be removed.", underlying: error)
        }
        if !isDone { throw TransferError(.resumeDataUsed, "Another transfer is using the partial file.") }
    }
}
