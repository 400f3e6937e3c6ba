import Foundation
import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

extension TransferClient {
    /// Sends a request once, with the credentials of this client. It is not repeated, and no redirection is followed.
    /// - Parameters:
    ///   - request: the request. Its URI may contain a user and a password.
    ///   - content: the content of the request; `nil` for a method without content, such as GET.
    ///   - limit: the maximum number of bytes of the response's content that are received.
    ///   - stallTimeout: replaces the timeout of the configuration.
    package func send(
        _ request: TransferRequest, content: [UInt8]? = nil, limit: Int = 64 << 10, stallTimeout: Duration? = nil
    ) async throws(TransferError) -> SingleRequest {
        guard let uri = RequestURI(request.uri) else {
            throw TransferError(.invalidRequest, "The request URI must be an absolute http or https URI.")
        }
        var outgoing = request
        outgoing.fields = configuration.fields.merging(request.fields)
        if let credentials = uri.basicCredentials, !outgoing.fields.contains("Authorization") {
            outgoing.fields.append("Authorization", credentials)
        }
        do { try await configuration.authorize?(&outgoing) } catch {
            throw TransferError(.authorizationFailed, "The request could not be authorized.", underlying: error)
        }
        var transport = TransportRequest(
            uri: uri.text, method: request.method, fields: outgoing.fields,
            stallTimeout: stallTimeout ?? configuration.stallTimeout, rateLimit: configuration.rateLimit,
            settings: TransportSettings(configuration, proxy: configuration.proxy, hasCredentials: true),
            receive: { _ in .collect(limit: limit, within: .seconds(300)) })
        transport.parsedURI = uri
        transport.isMeasured = false
        // libcurl allocates the buffer for each request.
        transport.settings.bufferSize = min(max(limit, 16 << 10), 64 << 10)
        if let content {
            transport.content = content.isEmpty ? .empty : .range(from: 0, count: Int64(content.count))
            transport.source = BytesSource(content)
        }
        let observer = configuration.onMessage.map { SingleRequest.Observer(onMessage: $0, id: UUID()) }
        observer?.note(.request(request.method, uri: uri.description(hidingPath: false)), transport.fields)
        return SingleRequest(exchange: engine.start(transport), uri: uri, observer: observer)
    }
}

/// A request that is sent once.
package struct SingleRequest: Sendable {
    fileprivate struct Observer: Sendable {
        let onMessage: @Sendable (TransferRecord) -> Void
        let id: UUID

        func note(_ message: TransferRecord.Message, _ fields: Fields) {
            onMessage(TransferRecord(message, fields: fields.hidingSecrets(), of: id))
        }
    }

    fileprivate let exchange: TransportExchange
    fileprivate let uri: RequestURI
    fileprivate let observer: Observer?

    /// Ends the request unless its response is complete. Any thread can call this at any time.
    package func cancel() { exchange.cancel() }

    /// Waits for the response.
    /// - Returns: the final response, whatever its status is, and whether its content was received completely; an error
    ///   if there is no response, with the code `paused` if the request was canceled.
    package func response() async -> Result<(response: TransferResponse, isComplete: Bool), TransferError> {
        let result = await exchange.result()
        if let head = result.head { observer?.note(.response(head.status, version: head.version), head.fields) }
        if case .canceled? = result.failure, !result.isContentComplete {
            return .failure(TransferError(.paused, "The request was stopped."))
        }
        guard let head = result.head else {
            return .failure(
                TransferError(
                    result.failure ?? .connectionLost(code: 0, message: "there was no response"), requestURI: uri))
        }
        return .success(
            (TransferResponse(head, content: result.content), result.failure == nil && result.isContentComplete))
    }
}

extension TransferResponse {
    /// Returns the target of the `Link` field (RFC 8288) with this relation.
    /// - Parameter uri: the URI of the request.
    /// - Returns: the absolute URI, without user and password, and whether its origin is that of the request; `nil` if
    ///   there is no such link.
    package func link(_ relation: String, from uri: String) -> (uri: String, isSameOrigin: Bool)? {
        guard let base = RequestURI(uri) else { return nil }
        for value in fields.values("Link") {
            // A target may contain commas, and ends with ">".
            for part in value.split(separator: "<").map({ $0.split(separator: ">", maxSplits: 1) }) {
                guard part.count == 2 else { continue }
                let isWanted = part[1].split(separator: ";").contains { parameter in
                    let pair = parameter.split(separator: "=", maxSplits: 1)
                    let words = { (text: Substring) in
                        text.split { " \t\",".contains($0) }.map { $0.lowercased() }
                    }
                    // One `rel` can have several relation types (RFC 8288 section 3.3).
                    return pair.count == 2 && words(pair[0]) == ["rel"] && words(pair[1]).contains(relation)
                }
                if isWanted, let target = base.resolving(String(part[0])) {
                    return (target.text, target.hasSameOrigin(as: base))
                }
            }
        }
        return nil
    }
}
