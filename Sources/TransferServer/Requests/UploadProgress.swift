/// What one request did for uploads.
struct UploadProgress: Sendable, Hashable {
    /// An upload resource came to be.
    var hasCreated = false
    /// Content was accepted behind some that was there already.
    var hasResumed = false
    /// The representation of an upload resource is whole, and its target has answered.
    var hasCompleted = false
}
