/// The content of a request: a range of a source.
struct TransportContent: Sendable {
    let source: any UploadSource
    /// Offset in the source of the first byte.
    let start: Int64
    /// Size in bytes, sent as Content-Length; nil: chunked until the source ends.
    let count: Int64?
    /// Without `count`: the content ends after so many bytes, if the source does not end before.
    let atMost: Int64?
}
