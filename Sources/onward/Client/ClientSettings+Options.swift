import CommandLineInterface
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension ClientSettings {
    typealias Option = CommandOption<ClientSettings>

    static let putOptions: [Option] =
        [
            Option(
                "method", "METHOD", group: "Upload", values: .words(["PUT", "POST", "PATCH"]),
                "of the request that begins it (PUT; POST for a URL that\nends in /)"
            ) { settings, value throws(OptionError) in
                let method = Method(rawValue: value)
                let others: [Method] = [.delete, .connect, .trace]
                guard Fields.isValidName(value), !method.isSafe, !others.contains(method) else {
                    throw OptionError("'\(value)' is not a method that takes content, such as PUT or POST")
                }
                settings.method = method
            },
            Option(
                flag: "careful", group: "Upload",
                "begin with an empty request, so that nothing is sent before\nthe server has said that it can resume; where it says so to\nOPTIONS, files of more than 4 MiB are begun so anyway"
            ) { $0.isCareful = true },
            Option(flag: "plain", group: "Upload", "one ordinary request that cannot be resumed") { $0.isPlain = true },
            Option(
                "interop", "N", group: "Upload", values: .words(["3", "4", "5", "6", "7", "8", "rfc"]),
                "version of the draft to speak, 3 to 8, or rfc (8)"
            ) { settings, value throws(OptionError) in
                if value == "rfc" {
                    settings.dialect = .rfc
                } else if let number = Int(value), (3...8).contains(number), let dialect = Dialect(rawValue: number) {
                    settings.dialect = dialect
                } else {
                    throw OptionError("'\(value)' is not a version from 3 to 8, nor rfc")
                }
            },
            Option(
                "append-size", "SIZE", group: "Upload", "most content in one request, for proxies that bound it"
            ) { settings, value throws(OptionError) in
                settings.appendSize = try positive(Quantity.bytes(value))
            },
            Option(
                flag: "digest", group: "Upload",
                "send the SHA-256 of the whole file (Repr-Digest); it is read\nonce more for that"
            ) { $0.sendsDigest = true },
        ] + connection + [restart, state] + output + [verbose]

    static let getOptions: [Option] =
        [
            Option(
                path: "output", letter: "o", "FILE", group: "Download",
                "where it goes: a file, or a directory for the URL's own name\n(the URL's name, in the working directory)"
            ) { settings, value throws(OptionError) in
                guard !value.isEmpty else { throw OptionError("the file's name is empty") }
                guard value != "-" else {
                    throw OptionError("what went to standard output cannot be resumed; name a file")
                }
                settings.output = FilePath(value.bytes)
            }
        ] + connection + [restart, state] + output + [verbose]

    static let resumeOptions: [Option] = connection + output

    static let statusOptions: [Option] = [json]

    static let cancelOptions: [Option] = [header, tokenFile, caFile]

    static let healthOptions: [Option] = [caFile, quiet]

    // MARK: Shared ones

    private static let connection: [Option] = [
        header, tokenFile, caFile,
        Option(
            "retries", "N", group: "Connection", "further tries without progress before it gives up (8)"
        ) { settings, value throws(OptionError) in
            settings.retries = try Quantity.count(value, 0...1_000_000)
        },
        Option(
            "stall-timeout", "DURATION", group: "Connection", "no byte in either direction for so long is a cut (60s)"
        ) { settings, value throws(OptionError) in
            settings.stallTimeout = try positive(Quantity.seconds(value))
        },
        Option(
            "limit-rate", "SIZE", group: "Connection", "bytes a second at most"
        ) { settings, value throws(OptionError) in
            settings.rateLimit = try positive(Quantity.bytes(value))
        },
    ]

    private static let header = Option(
        "header", "'N: V'", group: "Connection", repeatable: true, "field of the requests; repeatable"
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
        path: "cacert", "F", group: "Connection", "PEM certificates to trust in place of the system's"
    ) { settings, value throws(OptionError) in
        settings.caFile = try absolute(value)
    }

    private static let restart = Option(
        flag: "restart", group: "State", "begin anew, whatever is left of an earlier run"
    ) { $0.restarts = true }

    private static let state = Option(
        path: "state", "F", group: "State",
        "file for what is needed to go on (one for each transfer in\n$XDG_STATE_HOME/onward or ~/.local/state/onward)"
    ) { settings, value throws(OptionError) in
        settings.stateFile = try absolute(value)
    }

    private static let output: [Option] = [json, quiet]

    private static let quiet = Option(flag: "quiet", group: "Output", "errors alone") { $0.isQuiet = true }

    private static let json = Option(flag: "json", group: "Output", "one JSON object a line on standard output") {
        $0.isJSON = true
    }

    private static let verbose = Option(
        flag: "verbose", group: "Output", "the heads of all messages, secrets hidden"
    ) { $0.isVerbose = true }

    // MARK: Values

    private static func positive(_ value: Int64) throws(OptionError) -> Int64 {
        guard value > 0 else { throw OptionError("has to be more than 0") }
        return value
    }

    private static func absolute(_ argument: CommandArgument) throws(OptionError) -> FilePath {
        guard !argument.isEmpty else { throw OptionError("the file's name is empty") }
        guard let absolute = FilePath(argument.bytes).absolute else {
            throw OptionError("'\(argument)' lies in a directory that is not there")
        }
        return absolute
    }

    static func field(_ text: String) throws(OptionError) -> (name: String, value: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw OptionError("'\(text)' is not a field such as 'Name: value'")
        }
        let name = String(text[..<colon])
        let value = String(text[text.utf8.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        guard Fields.isValidName(name), Fields.isValidValue(value) else {
            throw OptionError("'\(name)' and what follows it cannot be sent as a field")
        }
        let own = [
            "content-length", "content-range", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
            "upgrade", "expect", "range", "if-range",
        ]
        guard !own.contains(name.lowercased()), !name.lowercased().hasPrefix("upload-") else {
            throw OptionError("\(name) is set by onward itself")
        }
        return (name, value)
    }
}
