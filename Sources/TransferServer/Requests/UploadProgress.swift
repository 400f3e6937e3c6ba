/// The progress of uploads by one request, for the metrics.
struct UploadProgress: Sendable, Hashable {
    /// An upload resource was created.
    var hasCreated = false
    /// Content was appended to an upload that already had some.
    var hasResumed = false
    /// The representation of an upload is complete, and its target has responded.
    var hasCompleted = false
}
