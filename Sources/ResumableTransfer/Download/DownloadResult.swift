import HTTPSemantics
import SystemCalls

/// What a download ended with.
public struct DownloadResult: Sendable, Hashable {
    /// Of the response that brought the last bytes: 200 or another 2xx, 206 where the download was resumed, or 416 where
    /// everything was there already.
    public var status: Status
    /// Of the same response.
    public var fields: Fields
    /// The content coding of the bytes in the file, `gzip` for example; `nil`: none. They are stored as they came.
    public var contentCoding: String?
    /// Of the whole file.
    public var path: String { file.repairedText }
    /// The same; its name need not be UTF-8.
    public var file: FilePath
    /// Bytes.
    public var size: Int64
    /// Bytes of content received in this run.
    public var received: Int64
    public var requests: Int

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
