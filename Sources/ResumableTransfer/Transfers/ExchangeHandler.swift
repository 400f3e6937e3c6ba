import HTTPTransport
import HTTPSemantics
import ResumableUpload

/// Participates in the exchanges of one transfer: it changes requests, receives responses, and decides about redirections
/// and challenges. The driver calls it in order, in the task of the transfer.
package protocol ExchangeHandler: Sendable {
    /// The settings of the connections of this transfer; `nil`: those of the client.
    var connection: ConnectionSettings? { get }

    /// Changes the fields of a request before it is sent. The request has the credentials of the caller. Fields that are
    /// added here are never stored.
    func prepare(_ request: inout TransferRequest, for step: ClientRequest)

    /// Called with the head of each final response, before its content is received.
    func received(_ response: TransferResponse, to request: TransferRequest)

    /// Decides about a redirection that the transfer would follow.
    /// - Parameter proposed: the next request, with the fields of the caller. For another origin it has none that may
    ///   contain credentials.
    func redirected(
        by response: TransferResponse, to proposed: TransferRequest
    ) async -> RedirectionDecision

    /// Decides about a 401 or 407.
    /// - Returns: whether ``prepare(_:for:)`` now adds other credentials, so the request is made again.
    /// - Throws: an error that ends the transfer with `authorizationFailed`.
    func challenged(by response: TransferResponse, to request: TransferRequest) async throws -> Bool

    /// Called when an exchange has ended.
    func ended(_ metrics: RequestMetrics)
}

/// The settings of connections in which the transfers of one client can differ.
package struct ConnectionSettings: Sendable, Hashable {
    /// The same as ``TransferClient/Configuration/stallTimeout``.
    package var stallTimeout: Duration?
    /// The same as ``TransferClient/Configuration/proxy``.
    package var proxy: String?

    package init(stallTimeout: Duration?, proxy: String?) {
        self.stallTimeout = stallTimeout
        self.proxy = proxy
    }
}

/// The decision about a redirection.
package enum RedirectionDecision: Sendable, Hashable {
    /// The transfer follows its own rules.
    case follow
    /// The request is sent to this URI, even if it is an http URI and the last one was https.
    case redirect(to: String)
    /// The redirection is the response of the transfer.
    case decline
}

extension ExchangeHandler {
    package var connection: ConnectionSettings? { nil }

    package func prepare(_ request: inout TransferRequest, for step: ClientRequest) {}

    package func received(_ response: TransferResponse, to request: TransferRequest) {}

    package func redirected(
        by response: TransferResponse, to proposed: TransferRequest
    ) async -> RedirectionDecision { .follow }

    package func challenged(
        by response: TransferResponse, to request: TransferRequest
    ) async throws -> Bool { false }

    package func ended(_ metrics: RequestMetrics) {}
}
