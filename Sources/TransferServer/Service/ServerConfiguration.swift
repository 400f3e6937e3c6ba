import HTTPSemantics
import ResumableUpload
import SystemCalls
import TLS

/// The configuration of a server.
public struct ServerConfiguration: Sendable {
    /// The addresses on which the server listens, such as `.tcp(host: "0.0.0.0", port: 8080)`.
    public var listeners: [SocketAddress]
    /// The certificate for TLS on all TCP addresses; `nil`: no TLS. Unix sockets never use TLS.
    public var credentials: ServerCredentials?
    /// The `max-age` of `Strict-Transport-Security` (RFC 6797) in seconds, which makes browsers use only https. The
    /// field is sent in responses over https; with `nil` it is not sent. 0 revokes an earlier value.
    public var strictTransportSecurity: Int64?
    /// The base of the server's paths for clients; `nil`: the base that a trusted proxy reports with each request.
    public var publicBase: PublicBase?
    /// The path below which the server has its own resources (`/uploads/`, `/onward/`, `/healthz`, `/readyz`, `/metrics`),
    /// such as `/.onward`; empty: they are at the top.
    public var ownPrefix = ""
    /// Trusted proxies, in addition to those on this machine. Their forwarding fields determine the client of a
    /// request.
    public var trustedProxies: [AddressBlock]
    /// Whether 104 is sent to clients that support it. Some proxies handle a 104 as the final response.
    public var shouldSendInterimResponses: Bool
    /// The maximum number of open connections. If there is one more, the slowest connection of the client with the most
    /// connections is closed. The new connection itself can be the slowest.
    public var maxConnections: Int
    /// The limits that are announced and enforced for every upload, in bytes; `maxAge` is the lifetime of an upload in
    /// seconds.
    public var limits: UploadLimits
    /// Whether upload resources are announced to clients that state no draft version, as the future RFC allows.
    public var isAnnouncedWithoutVersion: Bool
    /// Whether chunked content that would complete a representation of unknown length is rejected, because some proxies
    /// end interrupted content as if it were complete.
    public var isLengthRequired: Bool
    /// The minimum rate of content and responses in bytes per second, averaged over ``rateWindow``; `nil` for no
    /// minimum.
    public var minRate: Int64?
    /// The time over which ``minRate`` is averaged.
    public static let rateWindow: Duration = .seconds(ConnectionTimeouts.defaultRateWindow)
    /// The timeout for the head of the first request of a connection.
    public var headerTimeout: Duration
    /// The timeout of a connection on which no byte of content, of a response or of the next request is transferred.
    public var idleTimeout: Duration
    /// The maximum time for responses in progress when the server stops.
    public var drainTimeout: Duration
    /// Whether all clients that can connect are served without credentials. Otherwise only requests from this machine
    /// are served, if they name localhost or a loopback address and have no forwarding fields. A page of another origin
    /// can then only send requests with safe methods, unless ``corsOrigins`` contains its origin.
    public var isAnonymousAllowed: Bool
    /// The authorizer of all requests; `nil`: every operation is allowed within the bounds of ``isAnonymousAllowed``.
    public var authorizer: (any Authorizer)?
    /// Origins whose pages may use the server, such as `https://app.example`.
    public var corsOrigins: [String]
    /// The format of log lines.
    public var logFormat: LogFormat
    /// The least severe level of messages that are logged. More severe messages are logged, too.
    public var logLevel: LogLevel
    /// The destination of log lines; by default they are discarded.
    public var logSink = LogSink.none
    /// Whether to log for each request with content why it got no interim response, or could not be resumed.
    public var shouldExplain = false
    /// The Cache-Control of files. `private` is added to responses that require credentials.
    public var cacheControl = CacheControl.noCache
    /// Whether people get a page in their browser: for directories of a ``FilesHandler`` with the prefix `files`, and for the
    /// path above it if no handler has this path. Only requests that name `text/html` in `Accept` get the page.
    public var hasPage = false
    /// The version of the program, for `/metrics`.
    public var version: String?

    /// Creates a configuration. The default values of the parameters are those of `onward serve`.
    public init(
        listeners: [SocketAddress] = [.tcp(host: "127.0.0.1", port: 8080)], credentials: ServerCredentials? = nil,
        publicBase: PublicBase? = nil, trustedProxies: [AddressBlock] = [], shouldSendInterimResponses: Bool = true,
        maxConnections: Int = 1000,
        limits: UploadLimits = UploadLimits(maxAge: 604_800), isAnnouncedWithoutVersion: Bool = false,
        isLengthRequired: Bool = false, minRate: Int64? = nil, headerTimeout: Duration = .seconds(30),
        idleTimeout: Duration = .seconds(60), drainTimeout: Duration = .seconds(30), isAnonymousAllowed: Bool = false,
        authorizer: (any Authorizer)? = nil, corsOrigins: [String] = [], logFormat: LogFormat = .text,
        logLevel: LogLevel = .info
    ) {
        self.listeners = listeners
        self.credentials = credentials
        self.publicBase = publicBase
        self.trustedProxies = trustedProxies
        self.shouldSendInterimResponses = shouldSendInterimResponses
        self.maxConnections = maxConnections
        self.limits = limits
        self.isAnnouncedWithoutVersion = isAnnouncedWithoutVersion
        self.isLengthRequired = isLengthRequired
        self.minRate = minRate
        self.headerTimeout = headerTimeout
        self.idleTimeout = idleTimeout
        self.drainTimeout = drainTimeout
        self.isAnonymousAllowed = isAnonymousAllowed
        self.authorizer = authorizer
        self.corsOrigins = corsOrigins
        self.logFormat = logFormat
        self.logLevel = logLevel
    }
}
