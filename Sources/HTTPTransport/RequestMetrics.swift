import Foundation
import HTTPSemantics

/// The times of one request that has ended, and what was transferred. All durations are measured from ``startedAt``.
public struct RequestMetrics: Sendable, Hashable {
    /// The ``Transfer/id`` of the transfer that sent the request; `nil` for metrics that a program has created.
    public var transferID: UUID?
    /// The method of the request.
    public var method: HTTPSemantics.Method
    /// The URI of the request without its query; the path of an upload resource is hidden.
    public var uri = ""
    /// The status of the final response; `nil` if there was none.
    public var status: Status?
    /// The time at which the request was started.
    public var startedAt: Date
    /// The time until the address of the host (or of the proxy) was found; `nil` if the connection was reused or the
    /// address was not found.
    public var nameLookup: Duration?
    /// The time until the connection was made; `nil` if it was reused or could not be made.
    public var connect: Duration?
    /// The time until the TLS handshake was complete; `nil` without TLS, if the connection was reused, or if the
    /// handshake failed.
    public var secureConnect: Duration?
    /// The time until the first byte of the request was about to be sent; `nil` if nothing was sent.
    public var requestStart: Duration?
    /// The time until the last byte of the request was passed to the kernel; `nil` if the request was not sent
    /// completely.
    public var requestEnd: Duration?
    /// The time until the first byte of the first response, interim or final, was received; `nil` if there was no
    /// response.
    public var responseStart: Duration?
    /// The time until the request ended: after the last byte of the response, or because it was interrupted.
    public var duration: Duration
    /// Whether the request was sent on a connection of an earlier request.
    public var isConnectionReused = false
    /// The version of the protocol, `HTTP/1.1` or `HTTP/2`; `nil` if there was no final response.
    public var httpVersion: String?
    /// Whether the connection was made to a proxy. A proxy whose port is that of the URI is not recognized.
    public var isProxied = false
    /// The IP address of the server or proxy; `nil` if nothing was sent.
    public var remoteAddress: String?
    /// The port of the server or proxy; `nil` if nothing was sent.
    public var remotePort: Int?
    /// The IP address of the client's end of the connection; `nil` if nothing was sent.
    public var localAddress: String?
    /// The port of the client's end of the connection; `nil` if nothing was sent.
    public var localPort: Int?
    /// The number of bytes of the request's head that were sent, including those of a CONNECT request to a proxy.
    public var headSent: Int64 = 0
    /// The number of bytes in the heads of the responses, including interim ones.
    public var headReceived: Int64 = 0
    /// The number of bytes of the request's content that were passed to the kernel.
    public var sent: Int64 = 0
    /// The number of bytes of the response's content that were received.
    public var received: Int64 = 0

    /// Creates the metrics of a request that has just ended, for example in tests of a program.
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - duration: the time from the start of the request until now.
    public init(method: HTTPSemantics.Method, duration: Duration) {
        self.method = method
        self.duration = duration
        startedAt = Date(timeIntervalSinceNow: -(duration / .seconds(1)))
    }

    /// The maximum number of requests whose metrics a transfer keeps.
    package static let keptCount = 50
}
