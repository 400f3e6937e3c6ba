import HTTPSemantics
import ResumableUpload

extension TransferError {
    /// What the engine could not do.
    /// - Parameter uri: what it was to ask.
    init(_ failure: TransportFailure, asking uri: RequestURI) {
        switch failure {
        case .resolve: self.init(.hostNotFound, "The address of the host \(uri.host) could not be found.")
        case .connect(let peer, let reason):
            self.init(.cannotConnect, "\(peer ?? uri.authority) could not be reached: \(reason).")
        case .proxy(let failure): self.init(failure, asking: uri)
        case .tls(let text):
            self.init(.insecureConnection, "A secure connection could not be made.", underlying: text)
        case .connectionLost(_, let text): self.init(.connectionLost, "The connection was lost.", underlying: text)
        case .connectStalled:
            self.init(.timedOut, "No connection to \(uri.authority) was made within the stall timeout.")
        case .stalled: self.init(.timedOut, "No data was transferred during the stall timeout.")
        case .cancelled: self.init(.cancelled, "The request was cancelled.")
        case .sourceFailed(let offset, let error):
            self.init(
                .sourceUnavailable, "The source could not be read at \(offset).", underlying: error.map { "\($0)" })
        case .sinkFailed(let error):
            self.init(.destinationUnusable, "The destination could not be written.", underlying: "\(error)")
        case .invalidRequest: self.init(.invalidRequest, "The method or a field of the request cannot be sent.")
        case .unsupportedURI: self.init(.invalidRequest, "The URI scheme must be http or https.")
        case .tooManyRedirects: self.init(.tooManyRedirects, "There were too many redirections.")
        case .protocolViolation(let text):
            self.init(.protocolViolation, "The server's response could not be understood.", underlying: text)
        }
    }

    private init(_ failure: ProxyFailure, asking uri: RequestURI) {
        switch failure {
        case .unusable:
            self.init(
                .invalidRequest,
                "The proxy's URL cannot be used: its scheme has to be http, https, socks4, socks4a, socks5 or socks5h.")
        case .failed(let text): self.init(.proxyFailed, "The proxy could not be used.", underlying: text)
        case .refused(let number):
            let status = Status(rawValue: number)
            self.init(
                status.isTransient ? .proxyFailed : .proxyRefused,
                status == 407
                    ? "The proxy asks for credentials (\(status))."
                    : "The proxy refused the connection to \(uri.authority) (\(status)).",
                status: status)
        case .silent(let proxy):
            self.init(.timedOut, "The proxy \(proxy) did not connect to \(uri.authority) in time.")
        case .stalled(let proxy): self.init(.timedOut, "Nothing came from the proxy \(proxy) for the stall timeout.")
        }
    }
}
