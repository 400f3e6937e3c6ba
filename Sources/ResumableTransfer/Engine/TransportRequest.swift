import HTTPSemantics
import ResumableUpload
import SystemCalls

/// One request for ``TransportEngine``.
struct TransportRequest: Sendable {
    /// The head of the request. Its URI is absolute, with the scheme http or https. The fields are sent unchanged,
    /// except for `Expect`, `Content-Length` and `Transfer-Encoding`: ``content`` determines the framing, and only
    /// ``gate`` delays the content.
    var message: TransferRequest
    /// The range of ``source`` that is sent. Its length is `Content-Length`; content of unknown length is sent in
    /// chunks until the source ends.
    var content = ClientRequest.Content.none
    /// `nil` if there is no content.
    var source: (any UploadSource)?
    /// The maximum time for which the content waits for ``TransportExchange/openGate()`` after the head was sent;
    /// `nil`: the content does not wait.
    var gate: Duration?
    /// The maximum time in which no byte moves in either direction on a connection. After it the exchange ends as
    /// ``TransportFailure/stalled``. The time for which the client waits for the response is included, also if
    /// interim responses arrive. The time for which the content waits for the gate or for the rate limit is not
    /// included. If no connection is made within this time, including its TLS handshake, the exchange ends as
    /// ``TransportFailure/connectStalled``.
    var stallTimeout: Duration?
    /// The maximum rate of content in bytes per second, in each direction.
    var rateLimit: Int64?
    var settings: TransportSettings
    /// Called once, on the engine's thread, with the complete final head.
    var receive: @Sendable (ClientResponseHead) -> BodyDisposition
}

extension TransportRequest {
    /// The maximum time to make a connection.
    var connectTimeout: Duration { min(settings.connectTimeout, stallTimeout ?? settings.connectTimeout) }

    /// The content that is sent: none with HEAD.
    var sentContent: ClientRequest.Content { message.method == .head ? .none : content }
}

/// What is done with the content of a response.
enum BodyDisposition: Sendable {
    /// Up to `limit` bytes are kept for ``TransportResult/content``. The exchange ends, without a failure, if more
    /// follow or when this time has passed since the head.
    case collect(limit: Int, within: Duration)
    case write(any BodySink)
    /// The content is not received: the exchange ends as ``TransportFailure/cancelled``, with the head in its result.
    case abort
}

/// Receives the content of a response.
protocol BodySink: Sendable {
    /// Receives all of `bytes`, which follow the bytes of the previous call. Called on the engine's thread.
    /// - Throws: an error that ends the exchange as ``TransportFailure/sinkFailed(_:)``.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno)

    /// Whether the sink accepts bytes now.
    /// - Parameter wake: if the result is false, called once on any thread as soon as the sink accepts bytes, after
    ///   this function has returned.
    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool
}

extension BodySink {
    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool { true }
}

/// The settings of connections.
struct TransportSettings: Sendable {
    /// The path of a PEM file with certificates to trust instead of the system's.
    var caFile: FilePath?
    /// The URI of a proxy; nil: the proxy that the environment names (`http_proxy`, `https_proxy`, `no_proxy`); empty:
    /// none.
    var proxy: String?
    var httpVersion: HTTPVersion
    /// The maximum time from the search for the address to the end of the TLS handshake.
    var connectTimeout: Duration
    /// The certificate with which the client authenticates itself.
    var clientCertificate: ClientCertificate?
}

/// The version of HTTP that a client uses.
public enum HTTPVersion: Sendable, Hashable {
    /// HTTP/2 if the server offers it during the TLS handshake and libcurl is of version 8.7 or later, which sends
    /// uploads in HTTP/2 without errors; otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1.
    case http1
    /// HTTP/2. Over TLS, HTTP/1.1 is used if the server does not offer HTTP/2. Without TLS the server must support
    /// HTTP/2, because the client begins with it (RFC 9113 section 3.3).
    case http2
}
