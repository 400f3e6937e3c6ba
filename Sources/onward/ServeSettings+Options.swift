import CommandLineInterface
import Gateway
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TLS
import TransferServer
import UploadStorage

extension ServeSettings {
    static let options: [CommandOption<ServeSettings>] =
        StorageSettings.options(
            \.storage, group: "General", root: "data directory, created if it is missing\n[default: ./onward-data]")
        + otherOptions

    private static let otherOptions: [CommandOption<ServeSettings>] = [
        // General
        CommandOption(
            "listen", "HOST:PORT", group: "General", repeatable: true,
            "address to listen on, or unix:PATH; repeatable. ONWARD_LISTEN contains\nall addresses, separated by spaces [default: 127.0.0.1:8080]"
        ) { settings, value throws(OptionError) in
            settings.listeners.append(try address(value))
        },
        CommandOption(
            flag: "redirect-downloads", group: "General",
            "with --blobs: redirect the download of a file whose bytes are one\nobject to a URL of the object storage (307), which is valid for a\nminute; see docs/scale.md"
        ) { $0.shouldRedirectDownloads = true },
        CommandOption("max-connections", "N", group: "General", "maximum number of open connections [default: 1000]") {
            settings, value throws(OptionError) in
            settings.server.maxConnections = try Quantity.count(value, 1...1_000_000)
        },

        // Applications
        CommandOption(
            "route", "PATH=ORIGIN", group: applications, repeatable: true,
            "forward requests below PATH to an application, such as\n/upload=http://127.0.0.1:3000; repeatable. Resumable uploads are\nforwarded when they are complete. Settings follow after commas,\nsuch as access=open; see ROUTES in 'man onward-serve'"
        ) { settings, value throws(OptionError) in
            settings.configuredRoutes.append(ConfiguredRoute(value, at: "--route"))
        },
        CommandOption(
            "routes-file", "FILE", group: applications, "file with a route on each line, in the form of --route"
        ) { settings, value throws(OptionError) in
            settings.configuredRoutes += try routes(in: value)
        },
        CommandOption(
            "auth-url", "URL", group: applications,
            "URL of an application that decides about each request that has no\nvalid token of --token-file; not for routes with access=open"
        ) { settings, value throws(OptionError) in
            do throws(SettingError) { _ = try ApplicationAuthorizer(url: value) } catch {
                throw OptionError(error.description)
            }
            settings.authorizationURL = value
        },
        CommandOption(
            "check", "DESTINATION", group: applications,
            "program or URL that checks each file of /files/ before it is\npublished, for example for viruses, such as /usr/local/bin/scan or\nhttp://127.0.0.1:3000/check. The check can refuse the file or choose\nanother path for it. Settings follow after commas; see\nCHECKS BEFORE PUBLICATION in 'man onward-serve'"
        ) { settings, value throws(OptionError) in
            do throws(SettingError) {
                settings.publicationCheck = try PublicationCheckSettings(parsing: value) {
                    try? .seconds(Quantity.seconds($0))
                }
            } catch { throw OptionError(error.description) }
        },
        CommandOption(
            "events", "DESTINATION", group: applications,
            "URL or program that is notified of created, completed, refused,\ncanceled and expired uploads, such as http://127.0.0.1:3000/events.\nSettings follow after commas; see EVENTS in 'man onward-serve'"
        ) { settings, value throws(OptionError) in
            do throws(SettingError) {
                settings.events = try EventSettings(parsing: value) { try? .seconds(Quantity.seconds($0)) }
            } catch { throw OptionError(error.description) }
        },
        CommandOption(
            "events-secrets", "FILE", group: applications,
            "file with one or two secrets (whsec_…) with which events are signed;\nread again on SIGHUP"
        ) { settings, value throws(OptionError) in settings.eventSecretsFile = try fileName(value) },
        CommandOption(
            "origin-cacert", "FILE", group: applications,
            "PEM certificates to trust instead of the system's for https in\n--route, --auth-url, --check and --events; read at the start"
        ) { settings, value throws(OptionError) in settings.originCertificates = try certificates(in: value) },
        CommandOption(
            "own-prefix", "PATH", group: applications,
            "path of the server's own resources (files, uploads, healthz, readyz,\nmetrics, onward), such as /.onward, for applications that use these\nnames"
        ) { settings, value throws(OptionError) in
            guard value.hasPrefix("/"), let path = try? PathSegments(decoding: value), !path.segments.isEmpty else {
                throw OptionError("'\(value)' is not a path such as /.onward")
            }
            settings.server.ownPrefix = "/" + path.segments.joined(separator: "/")
        },

        // TLS
        CommandOption(
            "tls-cert", "FILE", group: "TLS",
            "certificate chain in PEM; all TCP addresses then use TLS;\nread again on SIGHUP"
        ) { settings, value throws(OptionError) in settings.certificateFile = try fileName(value) },
        CommandOption("tls-key", "FILE", group: "TLS", "private key of the certificate in PEM; read again on SIGHUP") {
            settings, value throws(OptionError) in settings.keyFile = try fileName(value)
        },
        CommandOption(
            "hsts", "DURATION", group: "TLS",
            "send Strict-Transport-Security with this max-age in responses over\nhttps [default: off]"
        ) { settings, value throws(OptionError) in
            settings.server.strictTransportSecurity = try Quantity.seconds(value)
        },

        // Behind a proxy
        CommandOption(
            "public-url", "URL", group: proxies,
            "base URL under which clients reach this server, such as\nhttps://files.example/inbox; the Location of uploads and files begins\nwith it"
        ) { settings, value throws(OptionError) in
            guard let base = PublicBase(url: value) else {
                throw OptionError(
                    "'\(value)' is not a URL such as https://files.example or https://files.example/inbox")
            }
            settings.server.publicBase = base
        },
        CommandOption(
            "trust-proxy", "CIDR", group: proxies, repeatable: true,
            "network of trusted proxies, such as 10.0.0.0/8 or fd00::/8: the\nserver uses the fields Forwarded and X-Forwarded-… that they send.\nThis machine and Unix sockets are always trusted; repeatable"
        ) { settings, value throws(OptionError) in
            guard let block = AddressBlock(parsing: value) else {
                throw OptionError(
                    "'\(value)' is not an address or a network such as 10.0.0.0/8; the bits after the prefix must be 0"
                )
            }
            settings.server.trustedProxies.append(block)
        },
        CommandOption(
            "interim", "on|off", group: proxies,
            "whether to send interim responses with status 104 (Upload Resumption\nSupported). If a proxy cannot handle them, use off, or let the proxy\nadd 'Onward-Interim: off' to each request\n[default: on]"
        ) { settings, value throws(OptionError) in
            guard value == "on" || value == "off" else { throw OptionError("'\(value)' is neither on nor off") }
            settings.server.shouldSendInterimResponses = value == "on"
        },

        // Protocol
        CommandOption(
            flag: "announce-without-version", group: "Protocol",
            "also send 104 to clients that state no draft version; for use\nafter the RFC is published"
        ) { $0.server.isAnnouncedWithoutVersion = true },

        CommandOption(
            flag: "require-length", group: "Protocol",
            "respond with 411 if chunked content would complete an upload whose\nlength is unknown. Use this option behind a proxy that sends the\nlast chunk even if the connection of the client breaks: incomplete\ncontent then looks complete"
        ) { $0.server.isLengthRequired = true },

        CommandOption(
            flag: "reject-form-data", group: "Protocol",
            "reject multipart/form-data (415), which curl -F and HTML forms\nsend. Without this option PUT stores the entire form as the file"
        ) { $0.shouldRejectFormData = true },

        // Limits
        size(
            "max-size", "maximum size of a file, and of the content of a request that is\nforwarded to an application",
            \.server.limits.maxSize),
        size(
            "min-size",
            "size below which an upload is not resumable: it is stored as a plain\nupload",
            \.server.limits.minSize),
        size("max-append-size", "maximum content of one request of a resumable upload", \.server.limits.maxAppendSize),
        size(
            "min-append-size", "minimum content of a request that does not complete its upload",
            \.server.limits.minAppendSize),
        CommandOption(
            "max-age", "DURATION", group: limits,
            "time after its creation at which an unfinished upload expires;\nappends do not extend it [default: 7d]"
        ) {
            settings, value throws(OptionError) in
            settings.server.limits.maxAge = try positive(Quantity.seconds(value))
        },
        CommandOption(
            "keep-completed", "DURATION", group: limits,
            "time for which the final response of a finished upload is kept\n[default: 24h]"
        ) {
            settings, value throws(OptionError) in
            settings.store.keepCompleted = .seconds(try Quantity.seconds(value))
        },
        CommandOption(
            "max-uploads", "N", group: limits,
            "maximum number of unfinished uploads of each principal (the NAME of\na token, or the name that the application of --auth-url returns; all\nother clients together)"
        ) { settings, value throws(OptionError) in
            settings.store.maxUploadsPerPrincipal = try Quantity.count(value, 1...1_000_000_000)
        },
        CommandOption(
            "quota", "SIZE", group: limits,
            "maximum total size of the files and unfinished uploads of each\nprincipal (the NAME of a token, or the name that the application of\n--auth-url returns; all other clients together)"
        ) { settings, value throws(OptionError) in
            settings.store.quotaPerPrincipal = try positive(Quantity.bytes(value))
        },
        CommandOption(
            "min-free", "SIZE", group: limits,
            "free space below which new uploads are refused\n[default: 1GiB, or a tenth of the disk if that is less]"
        ) { settings, value throws(OptionError) in
            settings.store.minFree = try Quantity.bytes(value)
        },

        // Timeouts
        CommandOption(
            "header-timeout", "DURATION", group: "Timeouts",
            "maximum time for the head of a connection's first request\n[default: 30s]"
        ) {
            settings, value throws(OptionError) in
            settings.server.headerTimeout = .seconds(try positive(Quantity.seconds(value)))
        },
        CommandOption(
            "idle-timeout", "DURATION", group: "Timeouts",
            "maximum time in which no byte is received or sent\n[default: 60s]"
        ) { settings, value throws(OptionError) in
            settings.server.idleTimeout = .seconds(try positive(Quantity.seconds(value)))
        },

        CommandOption(
            "min-rate", "SIZE", group: "Timeouts",
            "minimum rate of content and responses in bytes per second,\naveraged over 10 s [default: off]"
        ) { settings, value throws(OptionError) in
            settings.server.minRate = try positive(Quantity.bytes(value))
        },
        CommandOption(
            "drain-timeout", "DURATION", group: "Timeouts",
            "maximum time for responses in progress when the server stops\n[default: 30s]"
        ) { settings, value throws(OptionError) in
            settings.server.drainTimeout = .seconds(try Quantity.seconds(value))
        },

        // Access
        CommandOption(
            "token-file", "FILE", group: "Access",
            "file with lines NAME TOKEN [SCOPES] [prefix=/files/x/]; TOKEN may\nbe sha256:HEX; SCOPES is a list of read, create, write and\nadmin separated by commas [default: read,create,write]; read again\non SIGHUP"
        ) { settings, value throws(OptionError) in
            settings.tokenFile = try fileName(value)
        },
        CommandOption(
            flag: "public-read", group: "Access", "with --token-file: downloads and listings need no token"
        ) { $0.isPublicReadingAllowed = true },
        CommandOption(
            flag: "allow-anonymous", group: "Access",
            "accept requests of every client that can connect. Without this\noption a server that has no tokens, routes or --auth-url accepts only\nrequests that come directly from this machine, not through a proxy.\nSuch a server also rejects uploads and deletions by web pages of other\norigins, unless --cors-origin allows the origin. This option cannot\nbe combined with --token-file or --auth-url"
        ) { $0.server.isAnonymousAllowed = true },
        CommandOption(
            "cors-origin", "ORIGIN", group: "Browsers", repeatable: true,
            "origin whose pages may use the server, such as\nhttps://app.example; * is every origin; repeatable"
        ) { settings, value throws(OptionError) in
            let parts = value.split(separator: "/", omittingEmptySubsequences: false)
            let isOrigin = parts.count == 3 && parts[0].hasSuffix(":") && parts[1].isEmpty && !parts[2].isEmpty
            guard value == "*" || isOrigin else {
                throw OptionError("'\(value)' is not an origin such as https://app.example")
            }
            settings.server.corsOrigins.append(value)
        },

        CommandOption(
            flag: "no-page", group: "Browsers",
            "do not serve the web interface: browsers get plain listings of\n/files/"
        ) { $0.server.hasPage = false },
        CommandOption(
            flag: "inline", group: "Browsers",
            "let browsers show files of active types, such as HTML, SVG and\nPDF, in a sandbox; without this option browsers save them"
        ) { $0.shouldShowActiveTypes = true },
        CommandOption(
            "cache-control", "VALUE", group: "Browsers",
            "Cache-Control of files, such as max-age=3600; the directives public\nand s-maxage need --public-read; private is added if credentials\nare needed [default: no-cache]"
        ) { settings, value throws(OptionError) in
            guard let cacheControl = CacheControl(parsing: value) else {
                throw OptionError("'\(value)' is not a value of Cache-Control such as no-cache or max-age=3600")
            }
            settings.server.cacheControl = cacheControl
        },

        // Durability
        CommandOption(
            "durability", "MODE", group: "Durability", values: .words(["acknowledged", "relaxed"]),
            "acknowledged: a reported offset survives a power loss;\nrelaxed: it survives a crash of the server process, but perhaps\nnot a power loss or a crash of the system\n[default: acknowledged]"
        ) { settings, value throws(OptionError) in
            switch value {
            case "acknowledged": settings.store.durability = .acknowledged
            case "relaxed": settings.store.durability = .relaxed
            default: throw OptionError("'\(value)' is neither acknowledged nor relaxed")
            }
        },

        // Logging
        CommandOption(
            "log-format", "FORMAT", group: "Logging", values: .words(["text", "json"]), "text or json [default: text]"
        ) { settings, value throws(OptionError) in
            guard let format = LogFormat(rawValue: value) else {
                throw OptionError("'\(value)' is neither text nor json")
            }
            settings.server.logFormat = format
        },
        CommandOption(
            "log-level", "LEVEL", group: "Logging", values: .words(["error", "warning", "info", "debug"]),
            "error, warning, info or debug [default: info]"
        ) { settings, value throws(OptionError) in
            guard let level = LogLevel(rawValue: value) else {
                throw OptionError("'\(value)' is none of error, warning, info, debug")
            }
            settings.server.logLevel = level
        },
        CommandOption(
            flag: "explain", group: "Logging",
            "for each request with content, log which 104 responses it got, or\nwhy it got none. A client that sends Onward-Explain: ?1 gets this\nexplanation in the response, even without this option"
        ) { $0.server.shouldExplain = true },
    ]

    private static let applications = "Applications"
    private static let proxies = "Behind a proxy"
    private static let limits = "Limits (off unless a default is given)"

    private static func size(
        _ name: String, _ help: String, _ path: WritableKeyPath<ServeSettings, Int64?> & Sendable
    ) -> CommandOption<ServeSettings> {
        CommandOption(name, "SIZE", group: limits, help) { settings, value throws(OptionError) in
            settings[keyPath: path] = try positive(Quantity.bytes(value))
        }
    }

    /// Verifies that a file contains certificates in PEM.
    /// - Returns: the path of the file.
    static func certificates(in path: String) throws(OptionError) -> String {
        let path = try fileName(path)
        do throws(TLSClientConnection.Failure) {
            try TLSClientConnection.checkCertificates(of: .authorities(path: path))
        } catch { throw OptionError("\(path) is not a readable file with certificates in PEM") }
        return path
    }

    private static func fileName(_ value: String) throws(OptionError) -> String {
        guard !value.isEmpty else { throw OptionError("the file's name is empty") }
        return value
    }

    private static func positive(_ value: Int64) throws(OptionError) -> Int64 {
        guard value > 0 else { throw OptionError("the value must be greater than 0") }
        return value
    }

    private static func address(_ text: String) throws(OptionError) -> SocketAddress {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty else { throw OptionError("unix: needs a path") }
            return .unix(path: path)
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw OptionError("'\(text)' is neither HOST:PORT nor unix:PATH")
        }
        var host = String(text[..<colon])
        if host.hasPrefix("[") && host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty else { throw OptionError("'\(text)' has no host; for all IPv4 addresses use 0.0.0.0") }
        return .tcp(host: host, port: port)
    }
}
