import CommandLineInterface
import Gateway
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TLS
import TransferServer
import UploadStorage

/// The settings of `onward serve`.
struct ServeSettings {
    var storage = StorageSettings()
    var listeners: [SocketAddress] = []
    var server = {
        var configuration = ServerConfiguration()
        configuration.logSink = .standardError
        configuration.hasPage = true
        return configuration
    }()
    var store = StoreConfiguration()
    var tokenFile: String?
    /// The paths that belong to applications (`--route`, `--routes-file`).
    var configuredRoutes: [ConfiguredRoute] = []
    /// The receiver of events (`--events`), and the file with the secrets of their signatures.
    var events: EventSettings?
    var eventSecretsFile: String?
    /// The path of a PEM file with the certificates that are trusted for https URLs of applications, checks and events.
    var originCertificates: String?
    /// The check of files before they are published (`--check`).
    var publicationCheck: PublicationCheckSettings?
    /// The URL of the application that authorizes requests.
    var authorizationURL: String?
    var isPublicReadingAllowed = false
    /// Whether browsers may show files of active types, such as HTML, SVG and PDF (`--inline`).
    var shouldShowActiveTypes = false
    var shouldRejectFormData = false
    /// Whether downloads are redirected to the object storage (`--redirect-downloads`).
    var shouldRedirectDownloads = false
    var certificateFile: String?
    var keyFile: String?

    /// The variables of the environment that `onward serve` reads, for a command that has some of its options.
    static var variables: [String: String] {
        let names = Set(options.map(\.variable))
        return Environment.variables.filter { names.contains($0.key) }
    }

    /// Paths of the certificate chain and its key.
    var certificateFiles: (certificate: String, key: String)? {
        guard let certificateFile, let keyFile else { return nil }
        return (certificateFile, keyFile)
    }

    /// The maximum number of files that the server has open at the same time.
    var maxOpenFiles: UInt64 {
        // A connection needs a socket and usually a file. A request to another server also needs a socket, two descriptors
        // of libcurl, and possibly two directories. The connections of 64 earlier requests are kept for each destination.
        let isClient = if case .url? = publicationCheck?.destination { true } else { false }
        let destinations = routes.count + (authorizationURL == nil ? 0 : 1) + (isClient ? 1 : 0)
        let each = destinations == 0 ? 2 : 7
        return UInt64(server.maxConnections * each + destinations * 3 * 64 + 100)
    }

    /// Creates the handler for files. With `--cors-origin *` pages of all origins may read files and also embed them.
    func filesHandler(of store: UploadStore) -> FilesHandler {
        var check = publicationCheck
        check?.destination.caFile = originCertificates
        var handler = FilesHandler(
            store: store, shouldShowActiveTypes: shouldShowActiveTypes,
            resourcePolicy: server.corsOrigins.contains("*") ? .crossOrigin : .sameOrigin,
            shouldRejectFormData: shouldRejectFormData, check: check.map { PublicationCheck($0).verdict })
        handler.shouldRedirectDownloads = shouldRedirectDownloads
        return handler
    }

    /// Rejects settings that contradict each other.
    func check() throws(OptionError) {
        guard (certificateFile == nil) == (keyFile == nil) else {
            throw OptionError("--tls-cert and --tls-key must be given together")
        }
        if tokenFile != nil && server.isAnonymousAllowed {
            throw OptionError(
                "--token-file requires a token and --allow-anonymous does not; choose one. With --token-file and"
                    + " --public-read downloads need no token")
        }
        try checkStorage()
        try checkRoutes()
        try checkEvents()
        try checkPublicationCheck()
        if isPublicReadingAllowed && tokenFile == nil {
            throw OptionError("--public-read needs --token-file")
        }
        if let directive = server.cacheControl.sharingDirective, !isPublicReadingAllowed {
            throw OptionError(
                tokenFile == nil
                    ? "--cache-control with \(directive) needs --token-file and --public-read. Without tokens,"
                        + " \(directive) is not necessary: shared caches use max-age, too"
                    : "--cache-control with \(directive) would let caches give files to clients without a token; omit"
                        + " \(directive), or allow public reading with --public-read")
        }
        let limits = server.limits
        func require(_ low: Int64?, _ lowName: String, atMost high: Int64?, _ highName: String) throws(OptionError) {
            guard let low, let high, low > high else { return }
            throw OptionError("--\(lowName) is larger than --\(highName); the limits contradict each other")
        }
        try require(limits.minSize, "min-size", atMost: limits.maxSize, "max-size")
        try require(limits.minAppendSize, "min-append-size", atMost: limits.maxAppendSize, "max-append-size")
        try require(limits.minSize, "min-size", atMost: store.quotaPerPrincipal, "quota")
    }

    /// Rejects options that a shared storage does not support.
    private func checkStorage() throws(OptionError) {
        try storage.check()
        guard storage.cluster != nil else {
            if shouldRedirectDownloads {
                throw OptionError(
                    "--redirect-downloads needs --catalog and --blobs: only an object storage sends files itself")
            }
            return
        }
        if store.durability == .relaxed {
            throw OptionError("--durability relaxed needs --root: with --catalog every reported offset is durable")
        }
        if store.minFree != nil {
            throw OptionError("--min-free needs --root: an object storage does not report its free space")
        }
        if let route = routes.first(where: { $0.handoverDirectory != nil }) {
            throw OptionError(
                "handover= of the route \(route.path) needs --root: with --catalog no file is on this machine. Without"
                    + " handover= the application gets the content")
        }
    }
}
