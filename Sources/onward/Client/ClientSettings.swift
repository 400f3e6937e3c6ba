import CommandLineInterface
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// The options of a client command.
struct ClientSettings: Sendable {
    var fields = Fields()
    var tokenFile: FilePath?
    var stateFile: FilePath?
    var retries: Int?
    /// The maximum time without a byte, in seconds.
    var stallTimeout: Int64?
    /// The maximum rate, in bytes per second.
    var rateLimit: Int64?
    var caFile: FilePath?
    /// Whether users and passwords are read from `~/.netrc`.
    var shouldUseNetrc = false
    var certificate: FilePath?
    var key: FilePath?
    var proxy: String?
    /// The maximum time to make a connection, in seconds.
    var connectTimeout: Int64?
    var isIPv4Only = false
    var isIPv6Only = false
    var shouldRestart = false
    var isVerbose = false
    var isJSON = false
    var isQuiet = false

    // Options of put and get
    /// Whether a folder is transferred.
    var isRecursive = false
    /// The number of transfers that run at the same time; `nil`: it depends on their sizes.
    var jobs: Int?

    // Options of put
    var method: Method?
    var isCareful = false
    var isPlain = false
    var dialect = Dialect.newest
    var appendSize: Int64?
    var shouldSendDigest = false

    // Options of get
    var output: FilePath?
    /// The digest that the file must have.
    var checksum: (algorithm: DigestAlgorithm, bytes: [UInt8])?

    /// The only version of IP that is used; `nil`: both.
    var internetProtocol: InternetProtocol? { isIPv4Only ? .version4 : isIPv6Only ? .version6 : nil }

    /// Whether an option contains credentials that a user in the URL would contradict.
    var hasCredentials: Bool { tokenFile != nil || shouldUseNetrc }

    /// Rejects options that contradict each other.
    func checked() throws(OptionError) -> ClientSettings {
        if isQuiet && isVerbose { throw OptionError("--quiet and --verbose cannot be combined") }
        if isCareful && isPlain { throw OptionError("--careful and --plain cannot be combined") }
        if isPlain && appendSize != nil {
            throw OptionError("--plain and --append-size cannot be combined: --plain sends one request of any size")
        }
        if tokenFile != nil && fields.contains("Authorization") {
            throw OptionError("--token-file and --header 'Authorization: ...' cannot be combined")
        }
        if shouldUseNetrc && (tokenFile != nil || fields.contains("Authorization")) {
            throw OptionError("--netrc cannot be combined with --token-file or --header 'Authorization: ...'")
        }
        if isIPv4Only && isIPv6Only { throw OptionError("--ipv4 and --ipv6 cannot be combined") }
        if key != nil && certificate == nil { throw OptionError("--key needs the certificate: --cert F") }
        if jobs != nil && (rateLimit != nil || isVerbose) {
            throw OptionError(
                "--jobs cannot be combined with --limit-rate or --verbose: these options transfer one file at a time")
        }
        if isRecursive { try checkRecursion() }
        return self
    }

    private func checkRecursion() throws(OptionError) {
        if stateFile != nil { throw OptionError("--state cannot be combined with -r: a state file holds one transfer") }
        if let method, method != .put { throw OptionError("-r sends files with PUT, not with \(method.rawValue)") }
        if output != nil { throw OptionError("--output cannot be combined with -r; give the directory after the URL") }
        if checksum != nil { throw OptionError("--checksum cannot be combined with -r: it is the digest of one file") }
    }

    /// Rejects a URL that the options contradict.
    func check(_ url: TransferURL) throws(OptionError) {
        if url.hasCredentials && hasCredentials {
            throw OptionError(
                "\(tokenFile == nil ? "--netrc" : "--token-file") and a user in the URL cannot be combined")
        }
        guard isRecursive else { return }
        guard url.isCollection else {
            throw OptionError("-r needs the URL of a folder, which ends in /, not '\(url.shown)'")
        }
        if url.hasQueryOrFragment { throw OptionError("the URL of a folder cannot have a query or a fragment") }
    }

    /// Returns these settings, with the saved settings of a state file in place of missing settings.
    func completed(by saved: SavedTransfer.Options) -> ClientSettings {
        var result = self
        if !hasCredentials && !fields.contains("Authorization") {
            result.tokenFile = saved.tokenFile
            result.shouldUseNetrc = saved.shouldUseNetrc ?? false
        }
        result.caFile = caFile ?? saved.caFile
        if certificate == nil {
            result.certificate = saved.certificate
            result.key = saved.key
        }
        result.appendSize = appendSize ?? saved.appendSize
        return result
    }

    /// Returns whether requests have other credentials than those of a state. If so, a server that answers 404 may
    /// still have the upload.
    func hasOtherCredentials(than saved: SavedTransfer.Options) -> Bool {
        if let tokenFile { return tokenFile != saved.tokenFile }
        if shouldUseNetrc { return saved.shouldUseNetrc != true }
        return (saved.tokenFile != nil || saved.shouldUseNetrc == true) && fields.contains("Authorization")
    }
}

extension ClientSettings {
    /// The client for these settings.
    /// - Parameter report: receives the head of every message, with `--verbose`.
    func client(for report: TransferReport? = nil) throws(CommandFailure) -> TransferClient {
        var configuration = TransferClient.Configuration()
        configuration.creation = isPlain ? .plain : isCareful ? .careful : .automatic
        configuration.dialect = dialect
        configuration.maxRequestContentLength = appendSize
        if let retries { configuration.retry.maxRetriesWithoutProgress = retries }
        if let stallTimeout { configuration.stallTimeout = .seconds(stallTimeout) }
        configuration.rateLimit = rateLimit
        configuration.proxy = proxy
        if let connectTimeout { configuration.connectTimeout = .seconds(connectTimeout) }
        configuration.internetProtocol = internetProtocol
        configuration.caPath = caFile
        configuration.shouldSendDigest = shouldSendDigest
        // Tickets are not necessary, because the command locks its state file.
        configuration.shouldIssueTickets = false
        if isVerbose, let report {
            configuration.onMessage = { record in report.head(record) }
        }
        if let caFile { try ClientSettings.checkPEM(caFile, code: "cacert", "the certificates") }
        configuration.clientCertificate = try clientCertificate()
        if shouldUseNetrc {
            let netrc = try NetrcFile.read()
            configuration.authorize = { request in
                if let authorization = netrc.authorization(for: request.uri) {
                    request.fields.set("Authorization", authorization)
                }
            }
        }
        if let tokenFile {
            let file = TokenFile(path: tokenFile)
            // An unusable file is reported before anything else happens.
            _ = try file.authorization()
            configuration.authorize = { request in
                let authorization = try file.authorization()
                request.fields.set("Authorization", authorization)
            }
        }
        return TransferClient(configuration)
    }

    /// The request of `data`, with the fields of these settings.
    func request(_ data: ResumeData) -> TransferRequest {
        var request = data.request
        for field in fields { request.fields.remove(field.name) }
        for field in fields { request.fields.append(field.name, field.value) }
        return request
    }

    private func clientCertificate() throws(CommandFailure) -> ClientCertificate? {
        guard let certificate else { return nil }
        for file in [certificate, key].compactMap({ $0 }) {
            let content = "the certificate or key"
            guard file.text != nil else {
                throw CommandFailure(.inputOutput, "cert", "\(content) in \(file) cannot be read")
            }
            try ClientSettings.checkPEM(file, code: "cert", content)
        }
        return ClientCertificate(certificateFile: certificate.repairedText, keyFile: key?.repairedText)
    }

    /// Throws unless a file can be read and contains something in the format PEM. So a wrong file is reported before a
    /// connection is made.
    /// - Parameters:
    ///   - code: the code of the failure.
    ///   - content: what the file should contain, for the message.
    private static func checkPEM(_ path: FilePath, code: String, _ content: String) throws(CommandFailure) {
        let isPEM: Bool
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            let status = try file.status()
            if status.isDirectory { throw .isDirectory }
            // The content of a pipe can be read only once, by libcurl.
            guard status.isRegular else { return }
            isPEM = try file.content(atMost: 64 << 20).firstRange(of: Array("-----BEGIN ".utf8)) != nil
        } catch {
            throw CommandFailure(.inputOutput, code, "\(content) in \(path) cannot be read: \(error)")
        }
        guard isPEM else {
            throw CommandFailure(
                .inputOutput, code, "\(content) in \(path) cannot be used: the file is not in the format PEM")
        }
    }

    /// The settings that a state file stores.
    var saved: SavedTransfer.Options {
        SavedTransfer.Options(
            tokenFile: tokenFile, caFile: caFile, appendSize: appendSize, shouldUseNetrc: shouldUseNetrc ? true : nil,
            certificate: certificate, key: key)
    }
}
