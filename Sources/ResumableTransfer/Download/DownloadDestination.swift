import SystemCalls

/// Where a download goes.
public enum DownloadDestination: Sendable, Hashable {
    /// A file that appears when it is whole, in place of one that was there; the partial file lies beside it until then.
    /// What is neither a file nor a symbolic link to one is not replaced.
    case file(FilePath)
    /// A file in the storage directory, which the caller moves.
    case temporary

    /// The same for a name in UTF-8.
    public static func file(_ path: String) -> DownloadDestination { .file(FilePath(path)) }
}
