import HTTPSemantics
import ResumableUpload
import SystemCalls

extension TransferClient {
    /// How a client's transfers behave.
    public struct Configuration: Sendable {
        /// Sent with every request. Another origin gets only those that are known to authorize no one (`Accept…`,
        /// `User-Agent`, `Content-…`, conditions, and a few more).
        public var fields = Fields()
        /// Called before every request, so that credentials can be renewed. What it adds is never stored, and it is not
        /// called for requests to another origin than that of the caller's URI. What it throws ends the transfer.
        public var authorize: (@Sendable (inout TransferRequest) async throws -> Void)?
        /// How uploads are begun.
        public var creation: CreationStyle = .automatic
        /// How long the content of an optimistic creation waits for the server's 104.
        public var gate: Duration = .seconds(1)
        /// The version of the protocol that uploads speak.
        public var dialect: Dialect = .interop8
        /// The maximum length of the content of one upload request in bytes, including the creation; `nil`: no limit.
        public var maximumContent: Int64?
        /// The number of attempts without progress and the waits between attempts.
        public var retry = RetryPolicy()
        /// After how long without a byte in either direction a request counts as interrupted; `nil`: never. A connection has
        /// as long to be made, its TLS handshake included, and never more than 30 seconds.
        public var stallTimeout: Duration? = .seconds(60)
        /// The versions of HTTP that connections may use.
        public var httpVersion: HTTPVersion = .automatic
        /// A file of PEM certificates that are trusted in place of the system's.
        public var caFile: String? {
            get { caPath?.repairedText }
            set { caPath = newValue.map { FilePath($0) } }
        }
        /// The same; its name need not be UTF-8.
        package var caPath: FilePath?
        /// The URI of a proxy; `nil` leaves it to the environment (`http_proxy`, `https_proxy`, `no_proxy`).
        public var proxy: String?
        /// The maximum rate of a transfer in bytes per second; `nil`: no limit.
        public var rateLimit: Int64?
        /// Whether an upload resource of another origin is used. Credentials never go there.
        public var allowsOtherOrigin = false
        /// Whether an upload sends `Repr-Digest` (RFC 9530) with the SHA-256 of the entire source, which is read once
        /// more for it. Sources of unknown length go without.
        public var sendsDigest = false
        /// An absolute path: the directory for tickets and for partial files without a destination, made with mode 0700
        /// when it is needed first. It must belong to the user and be writable by no other user.
        public var storageDirectory: String {
            get { storagePath.repairedText }
            set { storagePath = FilePath(newValue) }
        }
        /// The same; its name need not be UTF-8.
        package var storagePath = Self.defaultStoragePath
        /// Called with what a later process needs to resume the transfer, whenever that has changed: first when there is
        /// something to resume, and at the beginning of a transfer that is resumed; for a download also while bytes arrive,
        /// at most twice a second, and once more when it is complete and does not have its name yet. The transfer waits until
        /// it returns. Save the data here to survive a crash at any moment.
        public var checkpointed: (@Sendable (ResumeData) async -> Void)?
        /// Receives the head of every message sent and received, interim responses included, on some thread, in order for
        /// each transfer.
        public var observer: (@Sendable (TransferRecord) -> Void)?

        /// Whether tickets keep resume data from being used by two transfers at once. Without them the owner of the data
        /// ensures that.
        package var issuesTickets = true

        /// The default configuration.
        public init() {}

        /// `$XDG_STATE_HOME/onward/transfers`, or `~/.local/state/onward/transfers`.
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

extension TransportSettings {
    init(_ configuration: TransferClient.Configuration) {
        self.init(
            caFile: configuration.caPath, proxy: configuration.proxy, httpVersion: configuration.httpVersion,
            connectTimeout: .seconds(30))
    }
}
