import Digests
import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls
import TransferServer

/// Sends each request, without its content, to an application, whose response decides whether the request is served.
///
/// The application gets a GET request without content. It has the fields of the client's request except conditions and
/// ranges, and in addition `Onward-Method`, `Onward-Target`, `Onward-Host`, and `Onward-Length` if the length of the
/// representation is known. A 2xx response allows the request. It names the principal in `Onward-Principal`, and can
/// restrict uploads with `Upload-Limit`. A 4xx response is forwarded to the client. If there is any other response or
/// none, the client gets 503.
public final class ApplicationAuthorizer: Authorizer {
    /// The maximum number of bytes of a refusal's content.
    private static let maxContent = 64 << 10
    /// The maximum time to wait for the end of a response whose content is not needed.
    private static let endOfContent: Duration = .milliseconds(100)

    /// The authorizer of tokens of this server, which is used first; `nil`: there is none.
    let tokens: (any Authorizer)?
    private let client: OriginClient
    private let target: String
    private let timeout: Duration
    private let decisions = Monitor(DecisionCache())

    /// - Parameters:
    ///   - url: `http://HOST[:PORT]/PATH`, `https://HOST[:PORT]/PATH` or `unix:/SOCKET:/PATH`.
    ///   - caFile: see ``Origin/caFile``.
    ///   - timeout: the maximum time for a decision.
    ///   - tokens: an authorizer that is used first. The application does not get requests that it accepts.
    /// - Throws: ``SettingError`` if the URL is invalid.
    public init(
        url: String, caFile: String? = nil, timeout: Duration = .seconds(10), tokens: (any Authorizer)? = nil
    ) throws(SettingError) {
        let (parsed, target) = try Origin.parse(
            url, expected: "a URL: give http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:/SOCKET:/PATH")
        var origin = parsed
        origin.caFile = caFile
        self.target = target
        self.timeout = timeout
        self.tokens = tokens
        client = OriginClient(origin, timeout: timeout)
    }

    /// Returns the identity of a token, or the one that the application names.
    /// - Throws: `AuthorizationRefusal` with the response of the application, or with 503.
    public func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        let (hasToken, hasCookie) = (head.fields.contains("Authorization"), head.fields.contains("Cookie"))
        // Most cookies belong to the application.
        if let tokens, hasToken || hasCookie, let known = try? tokens.identify(head, target: target),
            hasToken || known.hasOwnCredential
        {
            return known
        }
        let description = RequestDescription(head, target)
        let now = SystemClock.monotonicNanoseconds()
        let key = description.key
        if let cached = decisions.withLock({ $0.decision(for: key, now: now) }) { return try cached.get() }
        let (decision, lifetime) = request(description)
        if lifetime > 0 {
            decisions.withLock { $0.keep(decision, for: key, until: now + lifetime * 1_000_000_000, now: now) }
        }
        return try decision.get()
    }

    /// Allows every operation except `readMetrics` to an identity that the application has named. The authorizer of
    /// tokens decides about all other identities; without it they are rejected.
    public func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? {
        if identity.credential == Self.credential { return operation == .readMetrics ? Self.metricsRefusal : nil }
        guard let tokens else { return Self.unauthenticated }
        return tokens.refusal(of: identity, operation, at: path)
    }

    /// The credential of identities that the application has named.
    private static let credential = "application"
    private static let metricsRefusal = AuthorizationRefusal.forbidden(
        code: "insufficient-scope", detail: "The metrics require a token of --token-file.")
    private static let unauthenticated = AuthorizationRefusal.forbidden(
        code: "not-allowed", detail: "The application has not authorized this client.")

    private func request(_ description: RequestDescription) -> (Result<Identity, AuthorizationRefusal>, lifetime: Int64)
    {
        let exchange = client.start(
            OriginRequest(method: .get, target: target, fields: description.fields, isRepeatable: true))
        defer { exchange.cancel() }
        let deadline = SystemClock.deadline(in: timeout)
        guard let head = finalHead(exchange, until: deadline) else { return (.failure(Self.unreachable), 0) }
        let lifetime = Self.lifetime(head.fields)
        switch head.status.rawValue {
        case 200..<300:
            guard let principal = head.fields["Onward-Principal"], Self.isPrincipal(principal) else {
                return (.failure(Self.invalid), 0)
            }
            let limits = UploadLimits(parsing: head.fields, dialect: .unversioned)
            if head.fields.contains("Upload-Limit") && limits == nil { return (.failure(Self.invalid), 0) }
            // The connection can be used again only after the end of the response.
            _ = exchange.result(until: min(deadline, SystemClock.deadline(in: Self.endOfContent)))
            return (.success(Identity(principal: principal, credential: Self.credential, limits: limits)), lifetime)
        case 400..<500:
            guard let content = content(of: exchange, until: deadline) else { return (.failure(Self.unreachable), 0) }
            guard content.count <= Self.maxContent else { return (.failure(Self.invalid), 0) }
            let fields = ForwardedMessage.responseFields(head.fields)
            return (
                .failure(AuthorizationRefusal(Response(status: head.status, fields: fields, content: content))),
                lifetime
            )
        default: return (.failure(Self.unreachable), 0)
        }
    }

    private func finalHead(_ exchange: OriginExchange, until deadline: Int64) -> ClientResponseHead? {
        while true {
            switch exchange.progress {
            case .interim: continue
            case .head(let head): return head
            case .failed: return nil
            case nil: guard exchange.step(until: deadline) else { return nil }
            }
        }
    }

    /// Waits until the content of a refusal is complete or longer than ``maxContent``.
    /// - Returns: the content; `nil` if it is incomplete.
    private func content(of exchange: OriginExchange, until deadline: Int64) -> [UInt8]? {
        let (content, result) = exchange.collect(atMost: Self.maxContent) {
            SystemClock.monotonicNanoseconds() >= deadline
        }
        if let result { return result.failure == nil ? content : nil }
        return content.count > Self.maxContent ? content : nil
    }

    /// Whether the name is valid in log lines and in the catalog, and is not the name of anonymous clients.
    private static func isPrincipal(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255 && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            && name != Identity.anonymous.principal
    }

    /// The seconds for which a decision may be used again (RFC 9111 section 4.2): `max-age` minus `Age`, at most a day;
    /// 0 without `max-age`, or with `no-store` or `no-cache`.
    private static func lifetime(_ fields: Fields) -> Int64 {
        var seconds: Int64 = 0
        for directive in fields.values("Cache-Control").flatMap({ $0.split(separator: ",") }) {
            let text = directive.lowercased().filter { $0 != " " && $0 != "\t" && $0 != "\"" }
            if text.hasPrefix("no-store") || text.hasPrefix("no-cache") { return 0 }
            if text.hasPrefix("max-age="), let value = Int64(text.dropFirst(8)) { seconds = value }
        }
        let age = fields["Age"].flatMap { Int64($0) } ?? 0
        return min(max(seconds - max(age, 0), 0), 86_400)
    }

    private static let unreachable = AuthorizationRefusal.undecided(
        code: "authorization-unavailable",
        detail: "The application that authorizes requests does not respond. Repeat the request later.")
    private static let invalid = AuthorizationRefusal.undecided(
        code: "authorization-invalid",
        detail: "The response of the application that authorizes requests is not valid. The operator of the server "
            + "has to correct the application.")
}

/// The fields that the application gets for a request of a client.
private struct RequestDescription {
    /// Fields that do not apply to the request for a decision: conditions, ranges, and the length of the content.
    private static let removed = [
        "Content-Length", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range",
    ]

    let fields: Fields

    init(_ head: RequestHead, _ target: RequestTarget) {
        var fields = ForwardedMessage.requestFields(SessionCookie.removed(from: head.fields), isUpload: false)
        for name in Self.removed { fields.remove(name) }
        fields.append("Onward-Method", head.method.rawValue)
        // The application compares paths, so for a target that is an absolute URL it also gets only the path and query.
        fields.append("Onward-Target", target.path + (target.query.map { "?" + $0 } ?? ""))
        if let host = target.authority ?? head.fields["Host"] { fields.append("Onward-Host", host) }
        if let length = Self.length(head) { fields.append("Onward-Length", "\(length)") }
        self.fields = fields
    }

    /// The length of the complete representation in bytes; `nil` if it is not known. `Upload-Length` is ignored if the
    /// server does not read it in this request, because it could then have any value.
    private static func length(_ head: RequestHead) -> Int64? {
        let fields = head.fields
        let dialect = Dialect(announcedBy: fields) ?? .unversioned
        let declared = dialect.isUploadLengthRead ? fields.uploadInteger(UploadFieldName.length) : nil
        if fields.contains(UploadFieldName.offset) { return declared }
        let length = fields["Content-Length"].flatMap { Int64($0) }
        guard
            case .creation(let isComplete) = RequestKind(
                method: head.method, isUploadResource: false, fields: fields, dialect: dialect)
        else { return length }
        return isComplete ? length ?? declared : declared
    }

    /// A digest of all these fields, credentials included.
    var key: [UInt8] {
        var digest = RunningDigest(.sha256)
        func add(_ text: String) {
            let bytes = Array(text.utf8)
            withUnsafeBytes(of: UInt64(bytes.count)) { digest.update($0) }
            bytes.withUnsafeBytes { digest.update($0) }
        }
        for field in fields {
            add(field.name.lowercased())
            add(field.value)
        }
        return digest.finalized()
    }
}

/// Decisions that can be used again.
private struct DecisionCache {
    private static let capacity = 10_000

    private var entries: [[UInt8]: (decision: Result<Identity, AuthorizationRefusal>, end: Int64)] = [:]

    func decision(for key: [UInt8], now: Int64) -> Result<Identity, AuthorizationRefusal>? {
        entries[key].flatMap { $0.end > now ? $0.decision : nil }
    }

    mutating func keep(
        _ decision: Result<Identity, AuthorizationRefusal>, for key: [UInt8], until end: Int64, now: Int64
    ) {
        if entries.count >= Self.capacity {
            entries = entries.filter { $0.value.end > now }
            if entries.count >= Self.capacity { entries = [:] }
        }
        entries[key] = (decision, end)
    }
}
