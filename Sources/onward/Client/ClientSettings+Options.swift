import CommandLineInterface
import Digests
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension ClientSettings {
    typealias Option = CommandOption<ClientSettings>

    static let putOptions: [Option] =
        [
            Option(
                "method", "METHOD", group: "Upload", values: .words(["PUT", "POST", "PATCH"]),
                "method of the first request\n[default: PUT, or without -r POST for a URL that ends in /]"
            ) { settings, value throws(OptionError) in
                let method = Method(rawValue: value)
                let withoutContent: [Method] = [.delete, .connect, .trace]
                guard Fields.isValidName(value), !method.isSafe, !withoutContent.contains(method) else {
                    throw OptionError("'\(value)' is not a method with content, such as PUT or POST")
                }
                settings.method = method
            },
            Option(
                flag: "careful", group: "Upload",
                "create the upload with an empty request, and send content only\nafter the response with the URL of the upload. For a file of more\nthan 4 MiB this is the default if the server supports resumable\nuploads"
            ) { $0.isCareful = true },
            Option(flag: "plain", group: "Upload", "send one ordinary request that cannot be resumed") {
                $0.isPlain = true
            },
            Option(
                "interop", "N", group: "Upload", values: .words(Dialect.allCases.map(\.name)),
                "interop version of the draft, \(Dialect.interopVersions), or rfc for the future RFC,\nwhich has no version field [default: 8]"
            ) { settings, value throws(OptionError) in
                guard let dialect = Dialect(named: value) else {
                    throw OptionError("'\(value)' is not a version from \(Dialect.interopVersions), nor rfc")
                }
                settings.dialect = dialect
            },
            Option(
                "append-size", "SIZE", group: "Upload", "maximum content of one request, for proxies with a limit"
            ) { settings, value throws(OptionError) in
                settings.appendSize = try positive(Quantity.bytes(value))
            },
            Option(
                flag: "digest", group: "Upload",
                "send the SHA-256 of the file (Repr-Digest); the file is then\nread twice"
            ) { $0.shouldSendDigest = true },
        ] + several + connection + [restart, state] + output + [verbose]

    static let getOptions: [Option] =
        [
            Option(
                path: "output", letter: "o", "FILE", group: "Download",
                "file to write, or a directory: the file's name is then the last\nsegment of the URL's path [default: the working directory]"
            ) { settings, value throws(OptionError) in
                guard !value.isEmpty else { throw OptionError("the file's name is empty") }
                guard value != "-" else {
                    throw OptionError("a download to standard output cannot be resumed; give a file")
                }
                settings.output = FilePath(value.bytes)
            },
            Option(
                "checksum", "sha256:HEX", group: "Download",
                "digest that the complete file must have, sha256:HEX or sha512:HEX;\nif it differs, the received bytes are deleted (status 69)"
            ) { settings, value throws(OptionError) in
                settings.checksum = try digest(value)
            },
        ] + several + connection + [restart, state] + output + [verbose]

    static let resumeOptions: [Option] = connection + output

    static let statusOptions: [Option] = [json]

    static let cancelOptions: [Option] = server

    static let healthOptions: [Option] = [caFile, quiet]

    // MARK: Shared options

    private static let several: [Option] = [
        Option(
            flag: "recursive", letter: "r", group: "Several files",
            "transfer a folder with all files in it; files that exist\nunchanged on the other side are skipped"
        ) { $0.isRecursive = true },
        Option(
            "jobs", "N", group: "Several files",
            "number of files that are transferred at the same time\n[default: as many small files as fit into 16 MiB, at most 64]"
        ) { settings, value throws(OptionError) in
            settings.jobs = try Quantity.count(value, 1...256)
        },
    ]

    /// The options that determine how a server is reached.
    private static let server: [Option] = [
        header, tokenFile,
        Option(flag: "netrc", group: "Connection", "use the user and password of the host in ~/.netrc") {
            $0.shouldUseNetrc = true
        },
        caFile,
        Option(path: "cert", "F", group: "Connection", "PEM certificate with which the client authenticates itself") {
            settings, value throws(OptionError) in
            settings.certificate = try absolute(value)
        },
        Option(
            path: "key", "F", group: "Connection",
            "unencrypted PEM private key of the certificate\n[default: the file of --cert]"
        ) {
            settings, value throws(OptionError) in
            settings.key = try absolute(value)
        },
        Option(
            "proxy", "URL", group: "Connection",
            "proxy to use instead of the one in http_proxy or https_proxy;\nempty for none"
        ) { settings, value throws(OptionError) in
            settings.proxy = value
        },
        Option(
            "connect-timeout", "DURATION", group: "Connection",
            "maximum time to make a connection [default: 30s]"
        ) { settings, value throws(OptionError) in
            settings.connectTimeout = try positive(Quantity.seconds(value))
        },
        Option(flag: "ipv4", letter: "4", group: "Connection", "use IPv4 only") { $0.isIPv4Only = true },
        Option(flag: "ipv6", letter: "6", group: "Connection", "use IPv6 only") { $0.isIPv6Only = true },
    ]

    private static let connection: [Option] =
        server + [
            Option(
                "retries", "N", group: "Connection",
                "maximum number of retries; progress resets the count [default: 8]"
            ) { settings, value throws(OptionError) in
                settings.retries = try Quantity.count(value, 0...1_000_000)
            },
            Option(
                "stall-timeout", "DURATION", group: "Connection",
                "time without a byte in either direction after which the\nconnection counts as lost, also while it is made [default: 60s]"
            ) { settings, value throws(OptionError) in
                settings.stallTimeout = try positive(Quantity.seconds(value))
            },
            Option(
                "limit-rate", "SIZE", group: "Connection", "maximum rate in bytes per second"
            ) { settings, value throws(OptionError) in
                settings.rateLimit = try positive(Quantity.bytes(value))
            },
        ]

    private static let header = Option(
        "header", "'N: V'", group: "Connection", repeatable: true, "field to send with each request; repeatable"
    ) { settings, value throws(OptionError) in
        let field = try field(value)
        settings.fields.append(field.name, field.value)
    }

    private static let tokenFile = Option(
        path: "token-file", "F", group: "Connection", "file with a bearer token on its first line"
    ) { settings, value throws(OptionError) in
        settings.tokenFile = try absolute(value)
    }

    private static let caFile = Option(
        path: "cacert", "F", group: "Connection", "PEM certificates to trust instead of the system's"
    ) { settings, value throws(OptionError) in
        settings.caFile = try absolute(value)
    }

    private static let restart = Option(
        flag: "restart", group: "State",
        "start from the beginning, and delete the unfinished upload or\npartial file of an earlier run"
    ) { $0.shouldRestart = true }

    private static let state = Option(
        path: "state", "F", group: "State",
        "state file [default: a separate file for each transfer in\n$XDG_STATE_HOME/onward (or ~/.local/state/onward)]"
    ) { settings, value throws(OptionError) in
        settings.stateFile = try absolute(value)
    }

    private static let output: [Option] = [json, quiet]

    private static let quiet = Option(flag: "quiet", group: "Output", "print errors only") { $0.isQuiet = true }

    private static let json = Option(
        flag: "json", group: "Output", "print one JSON object on each line of standard output"
    ) {
        $0.isJSON = true
    }

    private static let verbose = Option(
        flag: "verbose", group: "Output", "print the heads of all HTTP messages, with secrets hidden"
    ) { $0.isVerbose = true }

    // MARK: Values

    private static func positive(_ value: Int64) throws(OptionError) -> Int64 {
        guard value > 0 else { throw OptionError("the value must be greater than 0") }
        return value
    }

    /// The absolute path of a file. If its directory does not exist, the use of the file reports that later (status 74).
    private static func absolute(_ argument: CommandArgument) throws(OptionError) -> FilePath {
        guard !argument.isEmpty else { throw OptionError("the file's name is empty") }
        let path = FilePath(argument.bytes)
        if let absolute = path.absolute { return absolute }
        return path.isAbsolute ? path : (try? FilePath(".").resolved())?.appending(path) ?? path
    }

    /// Parses `sha256:HEX` and `sha512:HEX`.
    private static func digest(_ text: String) throws(OptionError) -> (algorithm: DigestAlgorithm, bytes: [UInt8]) {
        let parts = text.split(separator: ":", maxSplits: 1)
        let names: [String: DigestAlgorithm] = ["sha256": .sha256, "sha512": .sha512]
        guard parts.count == 2, let algorithm = names[parts[0].lowercased()],
            let bytes = [UInt8](hexadecimal: String(parts[1])), bytes.count == algorithm.size
        else {
            throw OptionError(
                "'\(text)' is neither sha256: followed by 64 hexadecimal digits nor sha512: followed by 128")
        }
        return (algorithm, bytes)
    }

    static func field(_ text: String) throws(OptionError) -> (name: String, value: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw OptionError("'\(text)' is not a field such as 'Name: value'")
        }
        let name = String(text[..<colon])
        let value = String(text[text.utf8.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        guard Fields.isValidName(name), Fields.isValidValue(value) else {
            throw OptionError("'\(name)' and its value cannot be sent as a field")
        }
        let reserved = [
            "content-length", "content-range", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
            "upgrade", "expect", "range", "if-range",
        ]
        guard !reserved.contains(name.lowercased()), !name.lowercased().hasPrefix("upload-") else {
            throw OptionError("\(name) is set by onward itself")
        }
        return (name, value)
    }
}
