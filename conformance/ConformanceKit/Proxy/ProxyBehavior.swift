/// The observed behavior of a proxy, as far as settings depend on it. Values that were not determined are `nil`.
package struct ProxyBehavior: Sendable, Equatable {
    enum Interim: Sendable, Equatable {
        /// All interim responses arrive while the content is being sent.
        case live
        /// Only the first interim response arrives while the content is being sent.
        case firstOnly
        /// This number of interim responses arrives for a request; the next one ends the request.
        case limited(Int)
        /// All interim responses arrive only with the final response.
        case late
        case dropped
        /// The proxy handles the first interim response as the final response.
        case treatedAsFinal
        /// After an interim response, the client gets a different final response, or none.
        case fatal(String)
    }

    enum Body: Sendable, Equatable {
        case streamed
        /// The upstream receives nothing until the content is complete.
        case withheld
    }

    enum Abort: Sendable, Equatable {
        case seen(milliseconds: Int64, bytesMissing: Int64)
        /// The connection to the upstream stays open after the client has closed its connection.
        case hidden
        /// The upstream receives content that ends as if it were complete.
        case looksComplete
        /// The upstream never receives the request.
        case neverReceived
    }

    enum EarlyAnswer: Sendable, Equatable {
        case passed(milliseconds: Int64)
        case late
        case lost(String)
    }

    var isOldHTTP = false
    var interim: Interim?
    var body: Body?
    var chunkedBody: Body?
    var abort: Abort?
    var chunkedAbort: Abort?
    var earlyAnswer: EarlyAnswer?
    /// The longest content that the proxy forwards.
    var longestContent: Int64?
    /// The shortest content that the proxy refuses.
    var refusedContent: Int64?
    var refusedMethods: [String] = []
    var changedFields: [String] = []
    /// Whether the upstream receives the host and the scheme of the client's URL.
    var isOriginPassed: Bool?
    var isRangePassed: Bool?

    init() {}
}
