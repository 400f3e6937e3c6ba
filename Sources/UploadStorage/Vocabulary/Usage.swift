/// What one principal uses.
package struct Usage: Sendable, Hashable {
    /// Unfinished uploads.
    package var uploads: Int
    /// Bytes reserved by unfinished uploads: their length, or what has arrived where it is unknown.
    package var reservedBytes: Int64
    /// Bytes of the published files that this principal created.
    package var publishedBytes: Int64

    package init(uploads: Int = 0, reservedBytes: Int64 = 0, publishedBytes: Int64 = 0) {
        self.uploads = uploads
        self.reservedBytes = reservedBytes
        self.publishedBytes = publishedBytes
    }
}
