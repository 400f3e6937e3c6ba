import HTTPTransport
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension TransferClient {
    /// The settings of all transfers of a client.
    public struct Configuration: Sendable {
        /// Fields that are sent with every request. Another origin receives only fields that are known to contain no
        /// credentials (`Accept…`, `User-Agent`, `Content-…`, conditions, and a few more).
        public var fields = Fields()
        /// Called before every request, so that it can add new credentials. The fields that it adds are never stored.
        /// Set preconditions (If-Match and others) in the fields of the `TransferRequest` instead. They belong only to
        /// the request that creates the upload, but the fields that are added here are also sent to the upload
        /// resource. It is not called for requests to another origin than that of the caller's URI. If it throws, the
        /// transfer ends with `authorizationFailed`.
        public var authorize: (@Sendable (inout TransferRequest) async throws -> Void)?
        /// Called with the 401 response to a request with credentials. The closure gets new credentials, which
        /// ``authorize`` then adds to requests. One call serves all transfers of the client that wait for it, and a 401
        /// to a request that was sent before the last refresh does not cause another call. The request is then made
        /// again: an upload continues at the offset that the server reports, a download after the bytes that it has. If
        /// the server rejects the new credentials, too, before any progress, the transfer ends with `unauthorized`. An
        /// error that the closure throws ends the transfers that wait with `authorizationFailed`. In both cases they
        /// can be resumed. It is not called for responses of another origin than that of the caller's URI.
        public var refreshCredentials: (@Sendable (TransferResponse) async throws -> Void)?
        /// How uploads are created: in one request with the content, or first in a request without content.
        public var creation: CreationStyle = .automatic
        /// The maximum time for which the client waits for the server's 104 before it sends the content of an
        /// optimistic creation.
        public var interimResponseTimeout: Duration = .seconds(1)
        /// The version of the protocol that uploads use.
        public var dialect: Dialect = .newest
        /// The maximum length in bytes of the content of each request of an upload, including the one that creates it;
        /// `nil`: no limit.
        public var maxRequestContentLength: Int64?
        /// The maximum number of retries without progress, and the delays before them.
        public var retry = RetryPolicy()
        /// Called before each wait for another attempt. It is not called if ``retry`` allows no further attempt.
        ///
        /// - `error`: the reason why the last attempt failed.
        /// - `attempt`: the number of failed attempts since the last progress, starting with 1.
        /// - `delay`: the delay that ``retry`` or the server's `Retry-After` proposes.
        public var shouldRetry:
            (@Sendable (_ error: TransferError, _ attempt: Int, _ delay: Duration) async -> RetryDecision)?
        /// The maximum number of transfers that run at the same time; `nil`: no limit. Values below 1 count as 1. Other
        /// transfers wait, in the order of ``Transfer/priority``, then of their start. A transfer that waits for its
        /// next attempt counts as running.
        public var maxTransfers: Int?
        /// The time without a byte in either direction after which a request counts as interrupted; `nil`: no limit. It
        /// also limits the time to make a connection, including the TLS handshake. The limit for a connection is at
        /// most 30 seconds.
        public var stallTimeout: Duration? = .seconds(60)
        /// The versions of HTTP that connections may use.
        public var httpVersion: HTTPVersion = .automatic
        /// A file of PEM certificates that are trusted in place of the system's.
        public var caFile: String? {
            get { caPath?.repairedText }
            set { caPath = newValue.map { FilePath($0) } }
        }
        /// The path ``caFile`` as bytes, which need not be UTF-8.
        package var caPath: FilePath?
        /// The certificate with which the client authenticates itself to a server that requests one; `nil`: none. It is
        /// not used for requests to another origin than that of the caller's URI.
        public var clientCertificate: ClientCertificate?
        /// The URI of a proxy; `nil`: the proxy that the environment names (`http_proxy`, `https_proxy`, `no_proxy`).
        public var proxy: String?
        /// The maximum rate of each transfer in bytes per second; `nil`: no limit. To limit the rate of all transfers
        /// together, set ``maxTransfers`` too: the product of both is the maximum.
        public var rateLimit: Int64?
        /// Whether uploads use an upload resource whose origin differs from that of the request. It receives no
        /// credentials.
        public var isOtherOriginAllowed = false
        /// Whether an upload sends `Repr-Digest` (RFC 9530) with the SHA-256 of the entire source, which is then read
        /// twice. It is not sent for sources of unknown length.
        public var shouldSendDigest = false
        /// An absolute path: the directory for partial files of downloads without a destination, and for tickets,
        /// created with mode 0700 when it is first needed. A ticket is a small file for a transfer that can be resumed.
        /// It prevents two transfers from using the same resume data. The directory must belong to the user and be
        /// writable by no other user. Processes that resume each other's transfers need the same directory.
        public var storageDirectory: String {
            get { storagePath.repairedText }
            set { storagePath = FilePath(newValue) }
        }
        /// The path ``storageDirectory`` as bytes, which need not be UTF-8.
        package var storagePath = Self.defaultStoragePath
        /// Called with the data that a later process needs to resume the transfer, whenever that data has changed: as
        /// soon as there is something to resume, and at the beginning of a resumed transfer. For a download it is also
        /// called at most twice a second while bytes arrive, and once more when the file is complete and does not have
        /// its final name yet. The transfer waits until the closure returns. Save the data here to survive a crash at
        /// any moment.
        public var onCheckpoint: (@Sendable (ResumeData) async -> Void)?
        /// Called with the head of every message that is sent or received, including interim responses. The calls are
        /// made on any thread, in order for each transfer.
        public var onMessage: (@Sendable (TransferRecord) -> Void)?
        /// Receives the log entries of all transfers; ``TransferLogEntry/Level`` lists what is logged at which level. It
        /// is called on any thread, in order for each transfer.
        public var onLogEntry: (@Sendable (TransferLogEntry) -> Void)?
        /// The lowest level of the entries for ``onLogEntry``.
        public var logLevel = TransferLogEntry.Level.info

        /// Called with the times of every request that has ended. The calls are made on any thread, in order for each
        /// transfer.
        public var onMetrics: (@Sendable (RequestMetrics) -> Void)?

        /// Whether tickets prevent two transfers from using the same resume data at the same time. Without tickets the
        /// caller has to prevent that.
        package var shouldIssueTickets = true

        /// The maximum time to make a connection, from the search for the address to the end of the TLS handshake. The
        /// stall timeout also limits it.
        package var connectTimeout: Duration = .seconds(30)
        /// The version of IP that connections use; `nil`: any.
        package var internetProtocol: InternetProtocol?

        /// The default configuration.
        public init() {}

        /// `$XDG_STATE_HOME/onward/transfers`; without this variable `~/.local/state/onward/transfers`; without a home
        /// directory `/var/tmp/onward-UID/transfers`.
        public static var defaultStorageDirectory: String { defaultStoragePath.repairedText }

        package static var defaultStoragePath: FilePath {
            if let state = FilePath.environment("XDG_STATE_HOME"), state.isAbsolute {
                return state.appending("onward/transfers")
            }
            if let home = FilePath.environment("HOME"), home.isAbsolute {
                return home.appending(".local/state/onward/transfers")
            }
            return FilePath("/var/tmp/onward-\(ProcessControl.effectiveUser)/transfers")
        }
    }
}

/// The next step after a failed attempt of a transfer.
public enum RetryDecision: Sendable, Hashable {
    /// Another attempt follows after this delay. A negative delay counts as zero.
    case retry(after: Duration)
    /// The transfer ends with the error. If it can be resumed, the error has resume data.
    case stop
}

extension TransportSettings {
    /// - Parameter hasCredentials: whether the request may carry credentials of the client.
    init(_ configuration: TransferClient.Configuration, proxy: String?, hasCredentials: Bool) {
        self.init(
            caFile: configuration.caPath, proxy: proxy, httpVersion: configuration.httpVersion,
            connectTimeout: configuration.connectTimeout,
            clientCertificate: hasCredentials ? configuration.clientCertificate : nil)
        internetProtocol = configuration.internetProtocol
    }
}
