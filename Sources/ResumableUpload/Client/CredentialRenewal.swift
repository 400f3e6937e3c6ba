import HTTPSemantics

/// Decides whether a transfer continues with other credentials after a 401 or 407.
package struct CredentialRenewal: Sendable {
    /// The source of other credentials.
    package enum Source: Sendable, Hashable {
        /// The closure of the client that refreshes credentials. It is called next.
        case refresh
        /// The handler of the transfer. It has chosen the credentials already, and limits the number of attempts itself.
        case handler
    }

    /// The source of credentials other than those of the current request; `nil` if there is none. It is set before the
    /// response to the request is handled.
    package var source: Source?
    /// Whether the credentials were refreshed since the last progress or retry. If the server does not accept them
    /// either, another refresh would not help.
    private var isFresh = false

    package init() {}

    /// Whether the request is made again with other credentials after a response with this status.
    package func isPossible(after status: Status) -> Bool {
        switch source {
        case .refresh: status == .unauthorized && !isFresh
        case .handler: [401, 407].contains(status)
        case nil: false
        }
    }

    /// Notes that there are other credentials.
    /// - Parameter isFresh: whether they were requested after the server had rejected those of the last request. False
    ///   if newer credentials already existed: they may be old, too, so another refresh is allowed.
    package mutating func noteRenewal(isFresh: Bool) { self.isFresh = isFresh }

    /// Notes progress or a retry, after which another refresh is allowed.
    package mutating func noteAttempt() { isFresh = false }
}
