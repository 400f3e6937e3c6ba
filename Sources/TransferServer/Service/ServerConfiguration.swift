import HTTPSemantics
import ResumableUpload
import SystemCalls
import TLS

/// How a server presents itself and what it lets its clients do.
public struct ServerConfiguration: Sendable {
    /// Where it listens.
    public var listeners: [SocketAddress]
    /// With which the TCP addresses speak TLS; `nil`: they do not. Unix sockets never do.
    public var credentials: ServerCredentials?
    /// Seconds for which browsers are asked to use nothing but https, by `Strict-Transport-Security` (RFC 6797) in responses to
    /// requests that came over https; `nil`: no such field is sent. 0 makes browsers forget what an earlier response asked.
    public var strictTransportSecurity: Int64?
    /// What stands before the server's paths where clients see them; `nil`: what a trusted proxy says of each request.
    public var publicBase: PublicBase?
    /// Proxies whose word counts about where requests come from, beside those on this machine.
    public var trustedProxies: [AddressBlock]
    /// Whether 104 is sent to clients that understand it. Some proxies take it for the final response.
    public var sendsInterimResponses: Bool
    /// Connections served at once. When there is one more, the slowest connection of the client that has the most is closed.
    public var maximumConnections: Int
    /// Limits announced and enforced for every upload; `maxAge` is an upload's life in seconds.
    public var limits: UploadLimits
    /// Announce upload resources to clients that name no version, as the published protocol will have it.
    public var announcesWithoutVersion: Bool
    /// Refuse chunked content that would complete a representation of unknown length: some proxies end a body that was cut
    /// as if it were whole.
    public var requiresLength: Bool
    /// Bytes that content and responses have to move in a second, on the average of ``rateWindow``; `nil`: any.
    public var minimumRate: Int64?
    /// Seconds over which ``minimumRate`` is looked at.
    public static let rateWindow = 10
    /// Seconds for the head of a connection's first request.
    public var headerTimeout: Int
    /// Seconds without a byte of content, of a response, or of a next request.
    public var idleTimeout: Int
    /// Seconds for responses under way when the server stops.
    public var drainTimeout: Int
    /// Take requests from anybody who can connect. Otherwise only from this machine, only for its own names, not through
    /// a proxy, and not from foreign web pages.
    public var allowsAnonymous: Bool
    /// Who may do what; `nil`: everybody anything, as far as ``allowsAnonymous`` goes.
    public var authorizer: (any Authorizer)?
    /// Origins whose pages may use the server, such as `https://app.example`.
    public var corsOrigins: [String]
    public var logFormat: LogFormat
    public var logLevel: LogLevel
    /// Where log lines go; by default nowhere.
    public var logSink = LogSink.none
    /// Log for each request with content why it got no interim response, or could not be resumed.
    public var explains = false
    /// How caches may use files. Responses to requests that need credentials are `private` besides.
    public var cacheControl = CacheControl.noCache
    /// Of the program, for `/metrics`.
    public var version: String?

    public init(
        listeners: [SocketAddress] = [.tcp(host: "127.0.0.1", port: 8080)], credentials: ServerCredentials? = nil,
        publicBase: PublicBase? = nil, trustedProxies: [AddressBlock] = [], sendsInterimResponses: Bool = true,
        maximumConnections: Int = 1000,
        limits: UploadLimits = UploadLimits(maxAge: 604_800), announcesWithoutVersion: Bool = false,
        requiresLength: Bool = false, minimumRate: Int64? = nil, headerTimeout: Int = 30, idleTimeout: Int = 60,
        drainTimeout: Int = 30, allowsAnonymous: Bool = false,
        authorizer: (any Authorizer)? = nil, corsOrigins: [String] = [], logFormat: LogFormat = .text,
        logLevel: LogLevel = .info
    ) {
        self.listeners = listeners
        self.credentials = credentials
        self.publicBase = publicBase
        self.trustedProxies = trustedProxies
        self.sendsInterimResponses = sendsInterimResponses
        self.maximumConnections = maximumConnections
        self.limits = limits
        self.announcesWithoutVersion = announcesWithoutVersion
        self.requiresLength = requiresLength
        self.minimumRate = minimumRate
        self.headerTimeout = headerTimeout
        self.idleTimeout = idleTimeout
        self.drainTimeout = drainTimeout
        self.allowsAnonymous = allowsAnonymous
        self.authorizer = authorizer
        self.corsOrigins = corsOrigins
        self.logFormat = logFormat
        self.logLevel = logLevel
    }
}

/// The form of log lines.
public enum LogFormat: String, Sendable, CaseIterable {
    case text, json
}

/// How much is logged; each level includes those before it.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    case error, warning, info, debug

    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
}
