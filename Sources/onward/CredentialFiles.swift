import CommandLineInterface
import Gateway
import SystemCalls
import TLS
import TransferServer

/// The contents of the token file, the certificate, the key and the secrets of events. The files are read again on
/// SIGHUP.
struct CredentialFiles {
    private let settings: ServeSettings
    private let authorizer: TokenAuthorizer?
    private let credentials: ServerCredentials?
    private let warnings: [String]
    private let eventSecrets: [EventSecret]
    /// The number of tokens in the file at the start.
    private let tokens: Int?

    init(_ settings: ServeSettings) throws(OptionError) {
        self.settings = settings
        var warnings: [String] = []
        if let path = settings.tokenFile {
            let list = try Self.tokens(in: path, &warnings)
            authorizer = TokenAuthorizer(list, isPublicReadingAllowed: settings.isPublicReadingAllowed)
            tokens = list.count
        } else {
            authorizer = nil
            tokens = nil
        }
        if let (certificate, key) = settings.certificateFiles {
            credentials = try Self.credentials(certificate, key, &warnings)
        } else {
            credentials = nil
        }
        eventSecrets =
            try settings.eventSecretsFile.map { (path) throws(OptionError) in
                try Self.eventSecrets(in: path, &warnings)
            } ?? []
        self.warnings = warnings
    }

    /// The settings of the delivery of events; `nil` if there is none.
    var events: EventSettings? {
        var events = settings.events
        events?.secrets = eventSecrets
        events?.destination.destination?.caFile = settings.originCertificates
        return events
    }

    func applied(to configuration: ServerConfiguration) -> ServerConfiguration {
        var configuration = configuration
        configuration.authorizer = authorizer
        if let url = settings.authorizationURL,
            let application = try? ApplicationAuthorizer(
                url: url, caFile: settings.originCertificates, tokens: authorizer)
        {
            configuration.authorizer = application
        }
        if !settings.routes.isEmpty {
            // Without tokens only requests from this machine may use files. As a client of a route can be elsewhere,
            // only the routes are served in this case.
            let base =
                configuration.authorizer ?? RoutesOnlyAuthorizer(isAnonymousAllowed: configuration.isAnonymousAllowed)
            configuration.authorizer = GatewayAuthorizer(
                routes: settings.routes, ownPrefix: configuration.ownPrefix, base: base)
        }
        configuration.credentials = credentials
        return configuration
    }

    /// Logs the number of tokens, and warnings about the files.
    func logState(to server: Server) {
        if let path = settings.tokenFile, let tokens { server.note(.info, "\(path) was read: \(tokens) tokens") }
        for warning in warnings { server.note(.warning, warning) }
    }

    /// Reads the files again. If one is invalid, the previous tokens or certificate stay in use.
    func reload(_ server: Server, _ delivery: EventDelivery?) {
        if settings.tokenFile == nil && settings.certificateFiles == nil && settings.eventSecretsFile == nil {
            server.note(
                .info, "received SIGHUP, but there is no token file, certificate or file of secrets to read again")
        }
        var warnings: [String] = []
        if let path = settings.tokenFile, let authorizer {
            do throws(OptionError) {
                let list = try Self.tokens(in: path, &warnings)
                authorizer.replace(with: list)
                server.note(.info, "\(path) was read again: \(list.count) tokens")
            } catch {
                server.note(.error, "the tokens stay as they were: \(error.message)")
            }
        }
        if let (certificate, key) = settings.certificateFiles {
            do throws(OptionError) {
                server.replaceCredentials(with: try Self.credentials(certificate, key, &warnings))
                server.note(.info, "\(certificate) was read again")
            } catch {
                server.note(.error, "the certificate stays as it was: \(error.message)")
            }
        }
        if let path = settings.eventSecretsFile, let delivery {
            do throws(OptionError) {
                delivery.replaceSecrets(with: try Self.eventSecrets(in: path, &warnings))
                server.note(.info, "\(path) was read again")
            } catch {
                server.note(.error, "the secrets of events stay as they were: \(error.message)")
            }
        }
        for warning in warnings { server.note(.warning, warning) }
    }

    private static func eventSecrets(
        in path: String, _ warnings: inout [String]
    ) throws(OptionError) -> [EventSecret] {
        let text = String(
            decoding: try content(of: path, "events-secrets", isSecret: true, &warnings), as: UTF8.self)
        do throws(SettingError) { return try EventSettings.secrets(parsing: text) } catch {
            throw OptionError("\(path): \(error)")
        }
    }

    private static func tokens(in path: String, _ warnings: inout [String]) throws(OptionError) -> TokenList {
        let text = String(decoding: try content(of: path, "token-file", isSecret: true, &warnings), as: UTF8.self)
        do throws(TokenList.Malformed) {
            let list = try TokenList(parsing: text)
            if list.count == 0 { warnings.append("\(path) contains no token: requests that need a token are rejected") }
            for name in list.namesWithShortTokens {
                warnings.append("\(path): a token of \(name) is so short that it can be guessed")
            }
            return list
        } catch {
            throw OptionError("\(path), line \(error.line): \(error.reason)")
        }
    }

    private static func credentials(
        _ certificate: String, _ key: String, _ warnings: inout [String]
    ) throws(OptionError) -> ServerCredentials {
        let chain = try content(of: certificate, "tls-cert", isSecret: false, &warnings)
        let secret = try content(of: key, "tls-key", isSecret: true, &warnings)
        do throws(TLSError) {
            let credentials = try ServerCredentials(certificate: chain, key: secret)
            if credentials.expiresAt < SystemClock.realtimeSeconds() {
                warnings.append("\(certificate) has expired")
            }
            return credentials
        } catch {
            throw OptionError("--tls-cert \(certificate) and --tls-key \(key) cannot be used: \(error)")
        }
    }

    /// - Parameter option: the name of the option that names the file, for errors.
    private static func content(
        of path: String, _ option: String, isSecret: Bool, _ warnings: inout [String]
    ) throws(OptionError) -> [UInt8] {
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            let status = try file.status()
            guard !status.isDirectory else { throw .isDirectory }
            if isSecret && status.isRegular && status.permissions & 0o077 != 0 {
                warnings.append("\(path) can be read or written by other users; run 'chmod 600' on it")
            }
            return try file.content(atMost: 16 << 20)
        } catch {
            throw OptionError("--\(option): \(path) cannot be read: \(error)")
        }
    }
}
