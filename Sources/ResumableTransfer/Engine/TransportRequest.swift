import HTTPSemantics
import ResumableUpload
import SystemCalls

/// One request for ``TransportEngine``.
struct TransportRequest: Sendable {
    /// Its URI is absolute, of the scheme http or https. The fields are sent as they are, but for `Expect`, `Content-Length`
    /// and `Transfer-Encoding`: how the content is framed follows from ``content``, and it waits for nothing but ``gate``.
    var message: TransferRequest
    /// The range of ``source`` that is sent. Its length is `Content-Length`; content of unknown length is sent in chunks
    /// until the source ends.
    var content = ClientRequest.Content.none
    /// `nil` if there is no content.
    var source: (any UploadSource)?
    /// Holds the content back until ``TransportExchange/openGate()``, or for this long after the head was sent.
    var gate: Duration?
    /// For how long no byte may move in either direction, once there is a connection, before the exchange ends as
    /// ``TransportFailure/stalled``. Waiting for the response counts, and interim responses do not end it; time at the gate or under the rate limit does not.
    /// A connection that is not there after as long, secured if need be, ends it as ``TransportFailure/connectStalled``.
    var stallTimeout: Duration?
    /// Bytes of content a second, in each direction.
    var rateLimit: Int64?
    var settings: TransportSettings
    /// Called once, on the engine's thread, with the complete final head.
    var receive: @Sendable (ClientResponseHead) -> BodyDisposition
}

extension TransportRequest {
    /// How long a connection may take to be made.
    var connectTimeout: Duration { min(settings.connectTimeout, stallTimeout ?? settings.connectTimeout) }

    /// The content that goes out: none with HEAD.
    var sentContent: ClientRequest.Content { message.method == .head ? .none : content }
}

/// What is done with the content of a response.
enum BodyDisposition: Sendable {
    /// Up to `limit` bytes are kept for ``TransportResult/content``. The exchange ends, without a failure, if more follow
    /// or when this time has passed since the head.
    case collect(limit: Int, within: Duration)
    case write(any BodySink)
    /// It is not received: the exchange ends as ``TransportFailure/cancelled``, with the head in its result.
    case abort
}

/// Receives the content of a response.
protocol BodySink: Sendable {
    /// Receives all of `bytes`, the next in order. Called on the engine's thread.
    /// - Throws: an error that ends the exchange as ``TransportFailure/sinkFailed(_:)``.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno)
}

/// The settings of connections.
struct TransportSettings: Sendable {
    /// Path of a PEM file with certificate authorities to trust besides the system's.
    var caFile: FilePath?
    /// URI of a proxy; nil: what the environment says (`http_proxy`, `https_proxy`, `no_proxy`); empty: none.
    var proxy: String?
    var httpVersion: HTTPVersion
    /// The time from the search for the address to the end of the TLS handshake.
    var connectTimeout: Duration
}

/// Which version of HTTP a client speaks.
public enum HTTPVersion: Sendable, Hashable {
    /// HTTP/2 if TLS negotiates it and libcurl carries uploads in it without errors (8.7 and later), else HTTP/1.1.
    case automatic
    case http1
    /// HTTP/2: negotiated by TLS with HTTP/1.1 to fall back on; without TLS from the first byte on (RFC 9113 §3.3).
    case http2
}
