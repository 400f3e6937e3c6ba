import Foundation
import FoundationNetworking
import ResumableTransfer

/// The metrics of a task, as on Apple's platforms. It replaces FoundationNetworking's class of the same name, whose
/// objects other libraries cannot fill.
public final class URLSessionTaskMetrics: NSObject, Sendable {
    /// The origin of a response: always `networkLoad`.
    public typealias ResourceFetchType = FoundationNetworking.URLSessionTaskMetrics.ResourceFetchType

    /// The metrics of each request of the task that has ended, in order: those after redirections and challenges, the
    /// requests of a resumable upload, and repeated ones. If there were more than 1,000, the last 1,000.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]
    /// The time from the creation of the task until its end.
    public let taskInterval: DateInterval
    /// The number of redirections that the task has followed.
    public let redirectCount: Int

    init(_ transactions: [URLSessionTaskTransactionMetrics], createdAt: Date, redirectCount: Int) {
        transactionMetrics = transactions
        // The clock may have been set back.
        taskInterval = DateInterval(start: createdAt, end: max(createdAt, Date()))
        self.redirectCount = redirectCount
    }
}

/// The metrics of one request and its response, as on Apple's platforms.
public final class URLSessionTaskTransactionMetrics: NSObject, Sendable {
    /// The request as it was sent, except for fields that libcurl adds.
    public let request: URLRequest
    /// The final response; `nil` if there was none.
    public let response: URLResponse?
    private let metrics: RequestMetrics

    init(_ metrics: RequestMetrics, request: URLRequest, response: URLResponse?) {
        self.metrics = metrics
        self.request = request
        self.response = response
    }

    private func date(_ elapsed: Duration?) -> Date? {
        elapsed.map { metrics.startedAt.addingTimeInterval($0 / .seconds(1)) }
    }

    private var isSecure: Bool { request.url?.scheme?.lowercased() == "https" }

    // MARK: Times

    /// The time at which the request was started.
    public var fetchStartDate: Date? { metrics.startedAt }
    /// The same as ``fetchStartDate``, because libcurl begins with the lookup; `nil` if the connection was reused or the
    /// address was not found.
    public var domainLookupStartDate: Date? { metrics.nameLookup == nil ? nil : metrics.startedAt }
    /// The time at which the address of the host (or of the proxy) was found; `nil` if the connection was reused or the
    /// address was not found.
    public var domainLookupEndDate: Date? { date(metrics.nameLookup) }
    /// The same as ``domainLookupEndDate``.
    public var connectStartDate: Date? { date(metrics.nameLookup) }
    /// The time at which the TLS handshake began; `nil` without TLS, or if no connection was made for the request.
    public var secureConnectionStartDate: Date? { isSecure ? date(metrics.connect) : nil }
    /// The time at which the TLS handshake was complete; `nil` without TLS, or if no handshake was completed for the
    /// request.
    public var secureConnectionEndDate: Date? { date(metrics.secureConnect) }
    /// The time at which the connection could be used, with TLS after its handshake; `nil` if no connection was made
    /// for the request.
    public var connectEndDate: Date? { date(isSecure ? metrics.secureConnect : metrics.connect) }
    /// The time at which the first byte of the request was about to be sent; `nil` if nothing was sent.
    public var requestStartDate: Date? { date(metrics.requestStart) }
    /// The time at which the last byte of the request was passed to the kernel; `nil` if the request was not sent
    /// completely.
    public var requestEndDate: Date? { date(metrics.requestEnd) }
    /// The time at which the first byte of a response, interim or final, was received; `nil` if there was none.
    public var responseStartDate: Date? { date(metrics.responseStart) }
    /// The time at which the response ended, or was interrupted; `nil` if there was no final response.
    public var responseEndDate: Date? { metrics.status == nil ? nil : date(metrics.duration) }

    // MARK: Counts

    /// The number of bytes of the request's head.
    public var countOfRequestHeaderBytesSent: Int64 { metrics.headSent }
    /// The number of bytes of the request's content that were passed to the kernel.
    public var countOfRequestBodyBytesSent: Int64 { metrics.sent }
    /// The same as ``countOfRequestBodyBytesSent``: content is not encoded.
    public var countOfRequestBodyBytesBeforeEncoding: Int64 { metrics.sent }
    /// The number of bytes in the heads of all responses, including interim ones.
    public var countOfResponseHeaderBytesReceived: Int64 { metrics.headReceived }
    /// The number of bytes of the response's content that were received.
    public var countOfResponseBodyBytesReceived: Int64 { metrics.received }
    /// The same as ``countOfResponseBodyBytesReceived``: content is not decoded.
    public var countOfResponseBodyBytesAfterDecoding: Int64 { metrics.received }

    // MARK: The connection

    /// The protocol, `http/1.1` or `h2`; `nil` if there was no final response.
    public var networkProtocolName: String? {
        metrics.httpVersion.map { $0 == "HTTP/2" ? "h2" : $0.lowercased() }
    }
    /// Whether the request was sent on a connection of an earlier request.
    public var isReusedConnection: Bool { metrics.isConnectionReused }
    /// Whether the connection was made to a proxy. A proxy whose port is that of the URL is not recognized.
    public var isProxyConnection: Bool { metrics.isProxied }
    /// The IP address of the server or proxy; `nil` if nothing was sent.
    public var remoteAddress: String? { metrics.remoteAddress }
    /// The port of the server or proxy; `nil` if nothing was sent.
    public var remotePort: Int? { metrics.remotePort }
    /// The IP address of this end of the connection; `nil` if nothing was sent.
    public var localAddress: String? { metrics.localAddress }
    /// The port of this end of the connection; `nil` if nothing was sent.
    public var localPort: Int? { metrics.localPort }
    /// `networkLoad`: there is no cache.
    public var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { .networkLoad }
}
