import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

/// One exchange of a transfer: a request and its responses.
extension TransferDriver {
    /// Sends one request and passes all events of the exchange to the operation.
    func perform(_ request: ClientRequest) async throws(TransferError) {
        guard await operation.canSend(request) else { return }
        let (message, parsed) = try await authorized(request)
        var outgoing = message
        guard let uri = parsed else {
            throw TransferError(.invalidRequest, "The request URI must be an absolute http or https URI.")
        }
        if let field = outgoing.fields.firstInvalid {
            throw TransferError(.invalidRequest, "The field \(field.name) cannot be sent.")
        }
        requests += 1
        operation.willSend(request, to: uri)
        outgoing.uri = uri.text
        handler?.prepare(&outgoing, for: request)
        observe(outgoing, request, to: uri)
        var transport = TransportRequest(
            uri: outgoing.uri, method: outgoing.method, fields: outgoing.fields, content: request.content,
            stallTimeout: connection.stallTimeout,
            rateLimit: client.configuration.rateLimit, settings: settings(of: request, to: uri),
            receive: { _ in .abort })
        transport.parsedURI = uri
        operation.complete(&transport, for: request)
        let exchange = client.engine.start(transport)
        var isAborted = false
        var result: TransportResult
        if operation.isDeleting {
            isAborted = await follow(exchange, of: request, outgoing, from: uri)
            result = await exchange.result()
        } else {
            (isAborted, result) = await control.interruptible(
                by: { exchange.cancel() },
                while: { (await follow(exchange, of: request, outgoing, from: uri), await exchange.result()) })
        }
        note(result, of: request, to: uri)
        if !isAborted {
            operation.machine.credentials.source = try await credentialSource(
                after: result, to: outgoing, request, at: uri)
            await consultHandler(aboutRedirectionIn: &result, to: request, from: uri)
        }
        try await operation.ended(result, of: request, from: uri, isAborted: isAborted)
    }

    /// The message of `request`, with the caller's fields and credentials, and its URI; `nil` if the request has no
    /// absolute http or https URI.
    private func authorized(_ request: ClientRequest) async throws(TransferError) -> (TransferRequest, RequestURI?) {
        let (text, uri): (String, RequestURI?) =
            switch request.resource {
            case .target: (plan.request.uri, plan.target)
            case .upload(let text), .other(let text): (text, RequestURI(text))
            }
        credentialGeneration = client.credentials?.generation ?? 0
        let fields = client.configuration.fields.merging(operation.callerFields).merging(request.fields)
        do {
            let outgoing = try await client.outgoing(
                TransferRequest(text, method: request.method, fields: fields), to: uri,
                hasCredentials: request.hasCredentials, target: plan.target, control: control,
                limit: operation.isDeleting ? .seconds(30) : nil
            ) { operation.restore(&$0, for: request) }
            return (outgoing, outgoing.uri == text ? uri : RequestURI(outgoing.uri))
        } catch {
            throw control.stop.flatMap { operation.error(of: $0) } ?? error
        }
    }

    /// - Returns: whether the operation has aborted the exchange.
    private func follow(
        _ exchange: TransportExchange, of request: ClientRequest, _ sent: TransferRequest, from uri: RequestURI
    ) async -> Bool {
        var isAborted = false
        for await event in exchange.events {
            switch event {
            case .interim(let head):
                if isAborted { continue }
                let step = operation.interim(head, exchange)
                observe(head, from: uri)
                control.events.send(.informational(head.status, head.fields))
                await operation.handle(event, of: request, exchange)
                switch step {
                case .proceed: break
                case .openGate: exchange.openGate()
                case .abort:
                    isAborted = true
                    exchange.cancel()
                }
            case .head(let head):
                observe(head, from: uri)
                handler?.received(TransferResponse(head), to: sent)
                await operation.handle(event, of: request, exchange)
            case .sent, .received: await operation.handle(event, of: request, exchange)
            }
        }
        return isAborted
    }

    /// The settings of the connection for a request. Only the origin that the caller named gets the client certificate.
    private func settings(of request: ClientRequest, to uri: RequestURI) -> TransportSettings {
        let isOrigin = plan.target?.hasSameOrigin(as: uri) == true
        return TransportSettings(
            client.configuration, proxy: connection.proxy,
            hasCredentials: request.hasCredentials && isOrigin)
    }

    /// The settings of the connections of this transfer.
    var connection: ConnectionSettings {
        handler?.connection
            ?? ConnectionSettings(
                stallTimeout: client.configuration.stallTimeout, proxy: client.configuration.proxy)
    }

    private func note(_ result: TransportResult, of request: ClientRequest, to uri: RequestURI) {
        guard var metrics = result.metrics else { return }
        metrics.transferID = plan.id
        metrics.uri = uri.description(hidingPath: request.isPathSecret)
        control.note(metrics)
        handler?.ended(metrics)
        client.configuration.onMetrics?(metrics)
    }

    private func observe(_ message: TransferRequest, _ request: ClientRequest, to uri: RequestURI) {
        let isPathSecret = request.isPathSecret
        client.configuration.onMessage?(
            TransferRecord(
                .request(message.method, uri: uri.description(hidingPath: isPathSecret)),
                fields: message.fields.hidingSecrets(), of: plan.id))
        log.write(
            .debug, "A request is sent.",
            ["method": message.method.rawValue, "request": uri.description(hidingPath: isPathSecret)])
    }

    private func observe(_ head: ClientResponseHead, from uri: RequestURI) {
        if !head.status.isInformational {
            log.write(.debug, "A response was received.", ["status": "\(head.status.rawValue)"])
        }
        client.configuration.onMessage?(
            TransferRecord(
                .response(head.status, version: head.version), fields: operation.shownFields(of: head, from: uri),
                of: plan.id))
    }
}

/// The decisions of the transfer's handler about redirections.
extension TransferDriver {
    /// Calls the handler to decide about a redirection, before the state machine receives the response.
    func consultHandler(
        aboutRedirectionIn result: inout TransportResult, to request: ClientRequest, from uri: RequestURI
    ) async {
        guard let handler, let head = result.head, !operation.isDeleting,
            operation.machine.follows(head.status, to: request), let location = head.location
        else { return }
        let response = TransferResponse(head, content: result.content)
        let proposed = proposal(location, request)
        let decision = await control.result { await handler.redirected(by: response, to: proposed) }
        switch decision {
        // After a stop request nothing more is sent.
        case .failure, .success(.follow): return
        case .success(.redirect(let target)): result.head?.location = uri.location(target)?.allowed
        case .success(.decline):
            result.head?.location = nil
            operation.machine.declineRedirection()
        }
    }

    /// The request that follows a redirection, for the handler.
    private func proposal(_ location: ResolvedLocation, _ request: ClientRequest) -> TransferRequest {
        var fields = client.configuration.fields.merging(operation.callerFields)
        if request.kind == .create {
            for field in request.fields where !Fields.belongsToTransfer(field.name) {
                fields.set(field.name, field.value)
            }
        }
        let isTrusted = location.relation == .sameOrigin && request.hasCredentials
        return TransferRequest(location.uri, method: request.method, fields: isTrusted ? fields : fields.withoutSecrets)
    }
}

extension ResolvedLocation {
    /// The same location, which may be followed even from https to http.
    fileprivate var allowed: ResolvedLocation {
        relation == .insecure ? ResolvedLocation(uri: uri, relation: .otherOrigin) : self
    }
}

/// Other credentials after a 401 or 407. They come from the client's closure that refreshes credentials, or from the
/// handler of the transfer.
extension TransferDriver {
    /// Finds the source of other credentials after a response, before the state machine receives it. For a 401 to a
    /// request with the caller's credentials this is the client's closure, if there is one; otherwise the handler
    /// decides.
    /// - Throws: `authorizationFailed`, if the handler ends the transfer.
    func credentialSource(
        after result: TransportResult, to sent: TransferRequest, _ request: ClientRequest, at uri: RequestURI
    ) async throws(TransferError) -> CredentialRenewal.Source? {
        guard let head = result.head, head.status == .unauthorized || head.status == 407 else { return nil }
        if head.status == .unauthorized, client.credentials != nil, request.hasCredentials,
            plan.target?.hasSameOrigin(as: uri) == true
        {
            return .refresh
        }
        guard let handler, !operation.isDeleting else { return nil }
        let response = TransferResponse(head, content: result.content)
        switch await control.result(of: { try await handler.challenged(by: response, to: sent) }) {
        // After a stop request nothing more is sent: the stop decides how the transfer ends.
        case _ where control.stop != nil: return .handler
        case .success(let hasCredentials): return hasCredentials ? .handler : nil
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request was not authorized.", response: response, underlying: failure)
        }
    }

    /// Gets the other credentials, and continues with them.
    func refreshCredentials() async throws(TransferError) {
        // The handler has chosen its credentials already.
        if operation.machine.credentials.source == .handler {
            return operation.machine.credentialsRefreshed(isFresh: false)
        }
        guard let refresh = client.credentials, let response else {
            throw TransferError(.internalFailure, "The credentials cannot be refreshed.")
        }
        guard let wait = refresh.join(rejected: credentialGeneration, response) else {
            return operation.machine.credentialsRefreshed(isFresh: false)
        }
        let outcome: CredentialRefresh.Outcome?
        if operation.isDeleting {
            // The stop was requested before this wait, and does not end it. So the wait needs a timeout.
            let timeout = Task {
                try await Task.sleep(for: .seconds(30))
                wait.leave()
            }
            outcome = await wait.outcome()
            timeout.cancel()
        } else {
            outcome = await control.interruptible(by: { wait.leave() }, while: { await wait.outcome() })
        }
        switch outcome {
        case .success?:
            log.write(.notice, "The credentials were refreshed.")
            operation.machine.credentialsRefreshed(isFresh: true)
        case nil where !operation.isDeleting: return
        case .failure(let failure)?: throw refreshError(failure)
        case nil: throw refreshError(nil)
        }
    }

    private func refreshError(_ failure: (any Error)?) -> TransferError {
        TransferError(
            .authorizationFailed, "The credentials could not be refreshed.", response: response, underlying: failure)
    }
}

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
    /// - Parameter proposed: the next request, with the fields of the caller. For another origin it has no fields that
    ///   may contain credentials.
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
