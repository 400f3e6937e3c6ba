/// How far a look at everything that a store holds has come. In constant memory, whatever that is.
struct StoreInspection {
    enum Stage {
        /// Uploads whose acknowledged bytes may be missing, from behind this one on.
        case uploads(after: UploadID?)
        /// Bytes that may belong to no upload.
        case bytes(BlobNames)
        /// Records of published files that may have been removed by hand, from behind this name on.
        case files(after: String)
        /// Everything has been looked at; again from this time on, in monotonic nanoseconds.
        case done(until: Int64)
    }

    var stage = Stage.uploads(after: nil)
    /// When interrupted uploads are settled again, in monotonic nanoseconds, after a pause for failures of this length.
    var settlesAgainAt: Int64 = 0
    var settlingPause: Int64 = 0
}
