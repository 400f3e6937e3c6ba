/// What to do for a download.
enum DownloadStep: Sendable {
    case send(DownloadRequest)
    /// Wait, and ask again then.
    case wait(Duration, DownloadInterruption)
    /// All bytes are at hand; with the response that brought the last of them.
    case finished(DownloadResponseHead)
    case failed(DownloadFailure)
}
