/// What a proxy was seen to do, as far as settings depend on it. Nil is: not found out.
package struct ProxyBehavior: Sendable, Equatable {
    enum Interim: Sendable, Equatable {
        /// All arrive while the content is still being sent.
        case live
        case firstOnly
        /// So many of a request arrive; with the next one the request ends.
        case limited(Int)
        /// They arrive together with the final response.
        case late
        case dropped
        /// What follows the first one is taken for its content.
        case takenForFinal
        /// The client gets another status, or nothing.
        case fatal(String)
    }

    enum Body: Sendable, Equatable {
        case streamed
        /// The upstream sees nothing until the content is whole.
        case withheld
    }

    enum Abort: Sendable, Equatable {
        case seen(milliseconds: Int64, bytesMissing: Int64)
        /// The upstream waits to no end.
        case hidden
        /// The content ends at the upstream as if it were whole.
        case faked
        /// The upstream never hears of the upload.
        case unheard
    }

    enum EarlyAnswer: Sendable, Equatable {
        case passed(milliseconds: Int64)
        case late
        case lost(String)
    }

    var speaksOldHTTP = false
    var interim: Interim?
    var body: Body?
    var chunkedBody: Body?
    var abort: Abort?
    var chunkedAbort: Abort?
    var earlyAnswer: EarlyAnswer?
    /// The longest content that it lets through, and the shortest that it refuses.
    var longestContent: Int64?
    var refusedContent: Int64?
    var refusedMethods: [String] = []
    var changedFields: [String] = []
    /// Whether the upstream can know the host and the scheme of the client's URL.
    var tellsOrigin: Bool?
    var passesRanges: Bool?

    init() {}
}
