import ResumableUpload

extension TransferError {
    /// What the engine could not do.
    /// - Parameter uri: what it was to ask.
    init(_ failure: TransportFailure, asking uri: RequestURI) {
        switch failure {
        case .resolve: self.init(.hostNotFound, "The address of the host \(uri.host) could not be found.")
        case .connect(let peer, let reason):
            self.init(.cannotConnect, "\(peer ?? uri.authority) could not be reached: \(reason).")
        case .proxy: self.init(.proxyFailed, "The proxy could not be used.")
        case .tls(let text):
            self.init(.insecureConnection, "A secure connection could not be made.", underlying: text)
        case .connectionLost(_, let text): self.init(.connectionLost, "The connection was lost.", underlying: text)
        case .connectStalled:
            self.init(.timedOut, "No connection to \(uri.authority) was made within the stall timeout.")
        case .stalled: self.init(.timedOut, "Nothing moved for the stall timeout.")
        case .cancelled: self.init(.cancelled, "The request was cancelled.")
        case .sourceFailed(let offset, let error):
            self.init(
                .sourceUnavailable, "The source could not be read at \(offset).", underlying: error.map { "\($0)" })
        case .sinkFailed(let error):
            self.init(.destinationUnusable, "The destination could not be written.", underlying: "\(error)")
        case .invalidRequest: self.init(.invalidRequest, "The method or a field of the request cannot be sent.")
        case .unsupportedURI: self.init(.invalidRequest, "The URI is none of http or https.")
        case .tooManyRedirects: self.init(.tooManyRedirects, "There were too many redirections.")
        case .protocolViolation(let text):
            self.init(.protocolViolation, "The server's answer could not be understood.", underlying: text)
        }
    }
}
