import HTTPSemantics
import Synchronization

/// The properties of a request that a handler needs to forward it to another server, and the handler's report about it.
package final class ForwardingContext: Sendable {
    /// `Forwarded`, `Via` and `X-Forwarded-…`.
    package let fields: Fields
    /// The value of `Host`: the authority that the client has requested.
    package let host: String?
    /// The fields of the request in progress.
    package let requestFields: Fields
    /// Whether `Authorization` of the request in progress was meant for this server only.
    package let hasOwnCredential: Bool
    /// Whether the client still waits for the response.
    package let isAwaited: @Sendable () -> Bool
    private let state = Mutex((unstored: Fields(), report: ForwardingReport?.none))

    init(
        fields: Fields, host: String?, requestFields: Fields, hasOwnCredential: Bool,
        isAwaited: @escaping @Sendable () -> Bool
    ) {
        self.fields = fields
        self.host = host
        self.requestFields = requestFields
        self.hasOwnCredential = hasOwnCredential
        self.isAwaited = isAwaited
    }

    /// The names of fields with credentials, in lower case. They are never stored, even if a handler declares them.
    static let credentialNames: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "cookie2", "set-cookie", "authentication-info",
        "x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-amz-security-token", "x-csrf-token",
        "x-xsrf-token",
    ]

    /// The fields of the request in progress that contain credentials. They are never stored.
    package var credentials: [Fields.Field] {
        requestFields.filter { Self.credentialNames.contains($0.name.lowercased()) }
    }

    /// Fields that are added to the response to the request in progress, and not stored with it.
    package var unstoredFields: Fields {
        get { state.withLock { $0.unstored } }
        set { state.withLock { $0.unstored = newValue } }
    }

    /// The last exchange with the other server, for log and metrics; `nil` if there was none.
    package var report: ForwardingReport? {
        get { state.withLock { $0.report } }
        set { state.withLock { $0.report = newValue } }
    }
}

/// One exchange with the server to which a request was forwarded.
package struct ForwardingReport: Sendable, Hashable {
    /// How an exchange ended.
    package enum Outcome: String, Sendable, CaseIterable {
        case answered
        /// No connection was made.
        case unreachable
        /// Nothing arrived in time.
        case timeout
        /// The response is not valid HTTP.
        case invalid
        /// The connection ended before the response.
        case lost
        /// The client or this server ended the exchange.
        case canceled
    }

    package var outcome: Outcome
    /// The nanoseconds until the head of the final response, or until the end.
    package var nanoseconds: Int64

    package init(_ outcome: Outcome, nanoseconds: Int64) {
        self.outcome = outcome
        self.nanoseconds = nanoseconds
    }
}
