import HTTPTransport
import HTTPSemantics
import ResumableUpload

extension TransferError {
    /// Converts a failure of the transport.
    /// - Parameter uri: the URI of the request.
    init(_ failure: TransportFailure, requestURI uri: RequestURI) {
        switch failure {
        case .resolve: self.init(.hostNotFound, "The address of the host \(uri.host) could not be found.")
        case .connect(let peer, let reason):
            self.init(.cannotConnect, "\(peer ?? uri.authority) could not be reached: \(reason).")
        case .proxy(let failure): self.init(failure, requestURI: uri)
        case .tls(let text):
            self.init(.insecureConnection, "A secure connection could not be made.", underlying: CurlError(text))
        case .connectionLost(_, let text):
            self.init(.connectionLost, "The connection was lost.", underlying: CurlError(text))
        case .connectStalled:
            self.init(.timedOut, "No connection to \(uri.authority) was made within the stall timeout.")
        case .stalled: self.init(.timedOut, "No data was transferred during the stall timeout.")
        case .canceled: self.init(.cancelled, "The request was canceled.")
        case .sourceFailed(let offset, let error): self.init(error, at: offset)
        case .sinkFailed(let error):
            self.init(.destinationUnusable, "The destination could not be written.", underlying: error)
        case .invalidRequest: self.init(.invalidRequest, "The method or a field of the request cannot be sent.")
        case .unsupportedURI: self.init(.invalidRequest, "The URI scheme must be http or https.")
        case .tooManyRedirects: self.init(.tooManyRedirects, "There were too many redirections.")
        // A server with TLS responds to a request without TLS with an alert. libcurl reports it as HTTP/0.9.
        case .protocolViolation(let text) where uri.scheme == "http" && text.contains("HTTP/0.9"):
            self.init(
                .protocolViolation,
                "The server sent something other than HTTP. If it requires TLS, use a URL that begins with https.",
                underlying: CurlError(text))
        case .protocolViolation(let text):
            self.init(.protocolViolation, "The server sent an invalid response.", underlying: CurlError(text))
        }
    }

    private init(_ failure: ProxyFailure, requestURI uri: RequestURI) {
        switch failure {
        case .unusable:
            self.init(
                .invalidRequest,
                "The proxy's URL cannot be used: its scheme has to be http, https, socks4, socks4a, socks5 or socks5h.")
        case .failed(let text): self.init(.proxyFailed, "The proxy could not be used.", underlying: CurlError(text))
        case .refused(let number):
            let status = Status(rawValue: number)
            self.init(
                status.isTransient ? .proxyFailed : .proxyRefused,
                status == 407
                    ? "The proxy requires credentials (\(status))."
                    : "The proxy refused the connection to \(uri.authority) (\(status)).",
                status: status)
        case .silent(let proxy):
            self.init(.timedOut, "The proxy \(proxy) did not connect to \(uri.authority) in time.")
        case .stalled(let proxy): self.init(.timedOut, "The proxy \(proxy) sent nothing during the stall timeout.")
        }
    }
}

extension TransferError {
    /// Converts the error of a source.
    /// - Parameter offset: the offset of the bytes that could not be read.
    init(_ error: SourceError, at offset: Int64) {
        var offset = offset
        var underlying: (any Error)?
        switch error {
        case .changed:
            self.init(.sourceChanged, "The source has changed while it was read.")
            return
        case .unavailable(let missing): offset = missing
        case .system(let error): underlying = error
        case .failed(let error): underlying = error
        }
        self.init(
            .sourceUnavailable, "The source could not be read at offset \(offset).", underlying: underlying)
    }

    /// The error of a canceled transfer whose upload or partial file could not be deleted because of this error.
    func asUnconfirmedDeletion(noun: String) -> TransferError {
        TransferError(
            .cancelled, "The \(noun) was canceled, but its deletion is not confirmed. \(message)", status: status,
            response: response, underlying: underlying)
    }
}

extension TransferError.Code {
    /// The code for a response with this status, after which the same request is not sent again.
    package init(rejection status: Status) {
        self = status.isUnauthorized ? .unauthorized : status == .preconditionFailed ? .preconditionFailed : .refused
    }
}

extension TransferDriver {
    /// The error that events report for an interruption.
    func error(of interruption: ClientInterruption) -> TransferError {
        switch interruption {
        case .connection, .unreachable, .unusableConnection:
            lastFailure ?? TransferError(.connectionLost, "The connection was lost.")
        case .stall: lastFailure ?? TransferError(.timedOut, "No data was transferred during the stall timeout.")
        case .truncated: TransferError(.connectionLost, "The response ended before its content was complete.")
        case .status(let status):
            TransferError(
                .serverUnavailable, "The server cannot serve the request now (\(status)).", status: status,
                response: response)
        case .unexpected(let status):
            TransferError(
                .unexpectedResponse,
                "The server sent something other than the file: \(response?.contentSummary ?? "\(status)").",
                status: status, response: response)
        case .inconsistent:
            TransferError(.protocolViolation, "The responses of the server contradict each other.", response: response)
        case .offsetConflict:
            TransferError(
                .offsetConflict, "The server refused the offset that it had reported, or did not advance it.",
                response: response)
        case .expiry: TransferError(.gone, "The lifetime of the upload passed before it was complete.")
        }
    }

    /// The error that ends the transfer.
    func error(of failure: ClientFailure) -> TransferError {
        switch failure {
        case .refused(let status):
            TransferError(
                TransferError.Code(rejection: status), "The server refused the \(Operation.noun) (\(status)).",
                status: status, response: response)
        case .unauthorized(let status):
            TransferError(
                .unauthorized,
                status == 407
                    ? "The proxy requires credentials (\(status))."
                    : "The server does not allow the \(Operation.noun) (\(status)).", status: status, response: response
            )
        case .tooManyRedirects:
            TransferError(.tooManyRedirects, "There were too many redirections.", response: response)
        case .insecureRedirect:
            TransferError(.insecureRedirect, "The server redirected from https to http.", response: response)
        case .violation(let text):
            TransferError(
                .protocolViolation, "The server sent an invalid response.", underlying: CurlError(text))
        case .exhausted(let reason), .notResumable(let reason): error(of: reason)
        case .canceled: TransferError(.cancelled, "The \(Operation.noun) was canceled.")
        case .gone(let status):
            TransferError(.gone, "The upload no longer exists on the server.", status: status, response: response)
        case .expired: TransferError(.gone, "The lifetime of the upload has passed.")
        case .tooLarge(let limit):
            TransferError(
                .tooLarge,
                limit.map { "The server accepts at most \($0) bytes." }
                    ?? "The upload is larger than the server accepts.",
                response: response)
        case .offsetLost(let acknowledged, let reported):
            TransferError(
                .offsetLost,
                "The server lost bytes: it had acknowledged \(acknowledged) bytes, and now reports \(reported).")
        case .offsetImpossible(let offset):
            TransferError(
                .offsetImpossible, "The server reported the offset \(offset), which is beyond the end of the source.")
        case .offsetUnknown(let status):
            TransferError(
                .protocolViolation, "The server did not report the offset of the upload (\(status)).",
                status: status, response: response)
        case .answerLost:
            TransferError(
                .protocolViolation,
                "The server ended the upload before it had received all bytes, and its final response was lost.")
        case .resumptionUnsupported(let status):
            TransferError(
                .resumptionUnsupported,
                "The server does not support resumable uploads (\(status)). An empty or incomplete file may have been stored.",
                status: status, response: response)
        case .locationChanged: TransferError(.locationChanged, "The server reported two different URLs for one upload.")
        case .locationUnusable(.insecure):
            TransferError(.locationUnusable, "The server reported an http URL for an upload over https.")
        case .locationUnusable:
            TransferError(.locationUnusable, "The server reported an upload URL of another origin.")
        case .digestMismatch:
            TransferError(
                .digestMismatch, "The bytes on the server do not match the digest of the source.", response: response)
        case .sourceUnavailable(let offset): TransferError(.unavailable(at: offset), at: offset)
        case .sourceChanged: TransferError(.sourceChanged, "The source has changed.")
        }
    }
}

extension TransportFailure {
    /// The interruption of a transfer that this failure causes.
    var interruption: ClientInterruption {
        switch self {
        case .proxy(let proxy) where proxy.isPermanent: .unusableConnection
        case .stalled, .proxy(.stalled): .stall
        case .resolve, .connect, .connectStalled, .proxy: .unreachable
        case .connectionLost, .canceled, .sourceFailed, .sinkFailed: .connection
        case .tls, .invalidRequest, .unsupportedURI, .tooManyRedirects, .protocolViolation: .unusableConnection
        }
    }
}

extension ProxyFailure {
    /// Whether another attempt would end in the same way.
    var isPermanent: Bool {
        switch self {
        case .unusable: true
        case .refused(let status): !Status(rawValue: status).isTransient
        case .failed, .silent, .stalled: false
        }
    }
}
