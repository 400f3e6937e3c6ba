/// What a response to a request of a download is.
enum DownloadReception: Sendable, Hashable {
    /// Its content goes on where the bytes at hand end, up to the offset `end`.
    case resume(DownloadRepresentation, end: Int64)
    /// Its content is everything from the beginning. It replaces the bytes at hand once it is complete.
    case replace(DownloadRepresentation)
    /// Everything is at hand.
    case complete(DownloadRepresentation)
    /// The size is right, but nothing tells whether the representation is the same; a part of it would come with that.
    case doubtful(DownloadRepresentation)
    /// It does not go with the bytes at hand.
    case unfit
    /// It is of the representation before, of which bytes are at hand as well.
    case earlier
    /// It is neither a part of what was asked for nor a new state of it; another try may bring that.
    case unexpected
    case redirection
    case refusal
    /// It cannot be understood.
    case violation(String)
}
