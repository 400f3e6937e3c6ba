import CCurl
import HTTPSemantics
import SystemCalls

/// The reason why an exchange has no complete response.
package enum TransportFailure: Error, Sendable, Hashable {
    /// The host's address could not be found.
    case resolve
    /// No connection was made. The peer is a host and a port; `nil` if libcurl does not name it.
    case connect(to: String?, reason: String)
    /// No connection was made, including its TLS handshake, within ``TransportRequest/stallTimeout``.
    case connectStalled
    case proxy(ProxyFailure)
    /// No secure connection was made, for example because the certificate is not trusted.
    case tls(String)
    /// The connection ended before the exchange had ended. `code` is the error code of libcurl.
    case connectionLost(code: Int32, message: String)
    /// No data was transferred during ``TransportRequest/stallTimeout``.
    case stalled
    case canceled
    /// The source returned no byte at this offset.
    case sourceFailed(at: Int64, SourceError)
    case sinkFailed(Errno)
    /// The URI scheme is neither http nor https.
    case unsupportedURI
    /// The method or a field cannot be sent: it could split the message.
    case invalidRequest
    case tooManyRedirects
    /// The response is not HTTP, or its head is invalid.
    case protocolViolation(String)
}

extension TransportFailure: CustomStringConvertible {
    /// The failure as a part of a sentence, for operators.
    package var description: String {
        switch self {
        case .resolve: "the address of the host could not be found"
        case .connect(let peer, let reason): "no connection\(peer.map { " to " + $0 } ?? ""): \(reason)"
        case .connectStalled: "no connection in time"
        case .proxy: "the proxy could not be used"
        case .tls(let text): "no secure connection: \(text)"
        case .connectionLost(_, let message): "the connection was lost: \(message)"
        case .stalled: "no data was transferred in time"
        case .canceled: "the request was canceled"
        case .sourceFailed(let offset, _): "the content could not be read at offset \(offset)"
        case .sinkFailed(let error): "the response could not be written: \(error)"
        case .unsupportedURI: "the scheme of the URI is neither http nor https"
        case .invalidRequest: "the method or a field cannot be sent"
        case .tooManyRedirects: "there were too many redirections"
        case .protocolViolation(let text): "the response is not valid HTTP: \(text)"
        }
    }
}

/// The reason why a request through a proxy failed. Except for `stalled`, the server has received nothing of the
/// request.
package enum ProxyFailure: Sendable, Hashable {
    /// The URL of the proxy has a form or a scheme that cannot be used.
    case unusable
    /// The proxy was not found, or it violates the protocol.
    case failed(String)
    /// The proxy answered the request for a tunnel (CONNECT) with this status.
    case refused(Int)
    /// The proxy at this host and port did not make the connection in time.
    case silent(String)
    /// The request was sent to the proxy at this host and port, and no response arrived within
    /// ``TransportRequest/stallTimeout``.
    case stalled(String)
}

extension TransportFailure {
    static let outOfMemory = TransportFailure.connectionLost(
        code: Int32(CURLE_OUT_OF_MEMORY.rawValue), message: "out of memory")

    /// The server has ended the connection before its response was complete.
    static let closed = TransportFailure.connectionLost(
        code: Int32(CURLE_GOT_NOTHING.rawValue), message: "the server closed the connection")

    /// Converts an error code of libcurl.
    /// - Parameter isStallLimit: whether the stall timeout limits the time to make a connection.
    /// - Parameter uri: the URI of the request.
    init(_ code: CURLcode, of easy: EasyHandle, requestURI uri: String, isConnected: Bool, isStallLimit: Bool) {
        let message = easy.text(of: code)
        switch code {
        // libcurl has no separate code for a proxy that refuses a tunnel.
        case _ where !isConnected && easy.connectStatus >= 300: self = .proxy(.refused(easy.connectStatus))
        // A response without a status line.
        case CURLE_UNSUPPORTED_PROTOCOL where isConnected: self = .protocolViolation(message)
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT: self = .unsupportedURI
        case CURLE_COULDNT_RESOLVE_HOST: self = .resolve
        // The message contains the URL, which may contain a password.
        case CURLE_COULDNT_CONNECT where message.hasPrefix("Unsupported proxy"),
            CURLE_COULDNT_RESOLVE_PROXY where message.hasPrefix("Unsupported proxy"):
            self = .proxy(.unusable)
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: self = .proxy(.failed(message))
        case CURLE_COULDNT_CONNECT: self = .unreachable(message, easy.systemError)
        case CURLE_OPERATION_TIMEDOUT where !isConnected:
            let proxy = easy.proxy(for: uri, isTunnel: message.hasPrefix("Proxy CONNECT"))
            self = proxy.map { .proxy(.silent($0)) } ?? (isStallLimit ? .connectStalled : .unreachable(message, nil))
        // The connection ended during the handshake: nothing is wrong with the certificate.
        case CURLE_SSL_CONNECT_ERROR
        where onward_easy_long(easy.pointer, CURLINFO_OS_ERRNO) != 0 || Self.reportsEnd(message):
            self = .unreachable(message, easy.systemError)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_USE_SSL_FAILED:
            self = .tls(message)
        // With TLS 1.3 the server rejects a missing client certificate after the handshake of the client has ended.
        case CURLE_RECV_ERROR where Self.reportsRejectedCertificate(message),
            CURLE_SEND_ERROR where Self.reportsRejectedCertificate(message):
            self = .tls(message)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR,
            CURLE_UPLOAD_FAILED:
            self = .protocolViolation(message)
        default: self = .connectionLost(code: Int32(code.rawValue), message: message)
        }
    }

    /// libcurl's message names the peer, which may be a proxy: "Failed to connect to 127.0.0.1 port 1 after 0 ms:
    /// Couldn't connect to server". The system's error states the reason more precisely.
    private static func unreachable(_ message: String, _ error: Errno?) -> TransportFailure {
        let words = message.split(separator: " ")
        var peer: String?
        if message.hasPrefix("Failed to connect to "), words.count > 6, words[5] == "port", UInt16(words[6]) != nil {
            peer = (words[4].contains(":") ? "[\(words[4])]" : String(words[4])) + ":" + words[6]
        }
        return .connect(to: peer, reason: error?.text ?? message)
    }

    /// Whether OpenSSL reports an alert of the peer about the certificate of the client (RFC 8446 section 6.2).
    private static func reportsRejectedCertificate(_ message: String) -> Bool {
        [
            "certificate required", "bad certificate", "certificate unknown", "unknown ca", "certificate expired",
            "certificate revoked", "unsupported certificate", "access denied",
        ].contains { message.contains("alert " + $0) }
    }

    /// Whether OpenSSL reports that the peer ended the connection, without a reason: OpenSSL has no code for that, and
    /// the system has no error if the connection was closed in order.
    private static func reportsEnd(_ message: String) -> Bool {
        ["SSL_ERROR_SYSCALL", "unexpected eof", "SSL_ERROR_ZERO_RETURN"].contains { message.contains($0) }
    }
}
