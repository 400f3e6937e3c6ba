/// How the content of a response ended.
enum ContentEnding: Sendable, Hashable {
    /// Where its framing tells that it ends.
    case whole
    case cut(DownloadInterruption)
    /// It was longer than the part that it was said to be.
    case overrun
}
