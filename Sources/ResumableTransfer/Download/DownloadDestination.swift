import SystemCalls

/// The destination of a download.
public enum DownloadDestination: Sendable, Hashable {
    /// A file that appears when it is complete and replaces one of that name; until then the partial file is beside it.
    /// What is neither a file nor a symbolic link to one is not replaced.
    case file(FilePath)
    /// A file in the storage directory, which the caller moves.
    case temporary

    /// The same for a name in UTF-8.
    public static func file(_ path: String) -> DownloadDestination { .file(FilePath(path)) }
}
