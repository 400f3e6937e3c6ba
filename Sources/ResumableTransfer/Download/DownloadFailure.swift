import HTTPSemantics

/// Why a download ends without success.
enum DownloadFailure: Error, Sendable, Hashable {
    /// A final status that promises nothing for another try.
    case refused(Status)
    /// 401, 403 or 407.
    case unauthorized(Status)
    case tooManyRedirects
    /// A redirection from https to http.
    case insecureRedirect
    /// What the server sent cannot be understood.
    case violation(String)
    /// There were too many tries without progress; the last one for this reason.
    case exhausted(lastReason: DownloadInterruption)
}
