import HTTPSemantics
import SystemCalls

/// The result of a complete download.
public struct DownloadResult: Sendable, Hashable {
    /// The status of the response that brought the last bytes: 200, 203, 206 if the download was resumed, or 416 if all
    /// bytes were received before.
    public var status: Status
    /// The fields of the same response.
    public var fields: Fields
    /// The content coding of the bytes in the file, `gzip` for example; `nil`: none. They are stored as they came.
    public var contentCoding: String?
    /// The absolute path of the complete file.
    public var path: String { file.repairedText }
    /// The same; its name need not be UTF-8.
    public var file: FilePath
    /// The size of the complete file in bytes.
    public var size: Int64
    /// Bytes of content received in this run.
    public var received: Int64
    /// The number of requests in this run.
    public var requests: Int

    /// A result with these values, for tests of callers.
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
