/// The progress of a check of the complete store. It needs the same amount of memory for a store of any size.
struct StoreInspection {
    enum Stage {
        /// The uploads after this upload are checked next: their acknowledged bytes may be missing.
        case uploads(after: UploadID?)
        /// The content files with these names are checked next: they may belong to no upload.
        case bytes(BlobNames)
        /// The records of published files after this name are checked next: the files may have been removed by hand.
        case files(after: String)
        /// Everything has been checked. The next check begins at this time, in monotonic nanoseconds.
        case done(until: Int64)
    }

    var stage = Stage.uploads(after: nil)
    /// The earliest time of the next attempt to complete interrupted publications, in monotonic nanoseconds.
    var nextSettlingTime: Int64 = 0
    /// The pause after the last such attempt, in nanoseconds; 0 if the attempt did not fail.
    var settlingPause: Int64 = 0
}
