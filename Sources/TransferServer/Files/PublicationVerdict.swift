import HTTPSemantics

/// The decision about a complete file before it is published: the result of the function `check` of a ``FilesHandler``.
public enum PublicationVerdict: Sendable {
    /// The file is published as its client requested.
    case accept
    /// The file is published at another path, in percent-encoding, below the prefix of the handler. If the path ends with
    /// a slash, the file gets a free name in this collection.
    ///
    /// A `PUT` to a file replaces a file that has the other path, if the conditions of the request hold for that file and
    /// the client may replace it. A `POST` replaces nothing: the name gets a number if it is in use. If the path is not
    /// valid, the check counts as failed.
    case acceptAs(String)
    /// The file is removed, and the client gets this final response, whose status is 4xx.
    case refuse(Response)
}

/// How a check ended, for log and metrics.
struct CheckReport: Sendable, Hashable {
    enum Outcome: String, Sendable, CaseIterable {
        case accepted
        case refused
        /// There was no valid decision. The file was not published, and is checked again when the client repeats its request.
        case failed
        /// The server stopped before the decision.
        case canceled
    }

    var outcome: Outcome
    var nanoseconds: Int64
}
