/// What one principal uses.
public struct Usage: Sendable, Hashable {
    /// Unfinished uploads.
    public var uploads: Int
    /// Bytes reserved by unfinished uploads: their length, or what has arrived where it is unknown.
    public var reservedBytes: Int64
    /// Bytes of the published files that this principal created.
    public var publishedBytes: Int64

    public init(uploads: Int = 0, reservedBytes: Int64 = 0, publishedBytes: Int64 = 0) {
        self.uploads = uploads
        self.reservedBytes = reservedBytes
        self.publishedBytes = publishedBytes
    }
}
