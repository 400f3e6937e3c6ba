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
    /// The timeout in seconds.
    var stallTimeout: Int64?
    /// The rate in bytes per second.
    var rateLimit: Int64?
    var caFile: FilePath?
    var restarts = false
    var isVerbose = false
    var isJSON = false
    var isQuiet = false

    // Options of put
    var method: Method?
    var isCareful = false
    var isPlain = false
    var dialect = Dialect.interop8
    var appendSize: Int64?
    var sendsDigest = false

    // Options of get
    var output: FilePath?

    /// Rejects options that contradict each other.
    func checked() throws(OptionError) -> ClientSettings {
        if isCareful && isPlain { throw OptionError("--careful and --plain cannot be combined") }
        if isPlain && appendSize != nil {
            throw OptionError("--plain and --append-size cannot be combined: --plain sends one request of any size")
        }
        if tokenFile != nil && fields.contains("Authorization") {
            throw OptionError("--token-file and --header 'Authorization: ...' cannot be combined")
        }
        return self
    }

    /// Returns these settings, with the saved settings of a state file in place of missing settings.
    func completed(by saved: SavedTransfer.Options) -> ClientSettings {
        var result = self
        if tokenFile == nil && !fields.contains("Authorization") { result.tokenFile = saved.tokenFile }
        result.caFile = caFile ?? saved.caFile
        result.appendSize = appendSize ?? saved.appendSize
        return result
    }

    /// Returns whether requests have other credentials than those of a state. If so, a server that answers 404 may
    /// still have the upload.
    func hasOtherCredentials(than saved: SavedTransfer.Options) -> Bool {
        if let tokenFile { return tokenFile != saved.tokenFile }
        return saved.tokenFile != nil && fields.contains("Authorization")
    }
}

extension ClientSettings {
    /// The client for these settings.
    /// - Parameter report: receives the head of every message, with `--verbose`.
    func client(for report: TransferReport? = nil) throws(CommandFailure) -> TransferClient {
        var configuration = TransferClient.Configuration()
        configuration.creation = isPlain ? .plain : isCareful ? .careful : .automatic
        configuration.dialect = dialect
        configuration.maximumRequestContentLength = appendSize
        if let retries { configuration.retry.maximumRetriesWithoutProgress = retries }
        if let stallTimeout { configuration.stallTimeout = .seconds(stallTimeout) }
        configuration.rateLimit = rateLimit
        configuration.caPath = caFile
        configuration.sendsDigest = sendsDigest
        // Tickets are not necessary, because the command locks its state file.
        configuration.issuesTickets = false
        if isVerbose, let report {
            configuration.onMessage = { record in report.head(record) }
        }
        if let caFile, !ClientSettings.isReadable(caFile) {
            throw CommandFailure(.inputOutput, "cacert", "the certificates in \(caFile) cannot be read")
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

    private static func isReadable(_ path: FilePath) -> Bool {
        (try? FileDescriptor.open(path, [.readOnly, .nonBlocking])) != nil
    }

    /// The settings that a state file stores.
    var saved: SavedTransfer.Options {
        SavedTransfer.Options(tokenFile: tokenFile, caFile: caFile, appendSize: appendSize)
    }
}

/// A file with a bearer token on its first line.
struct TokenFile: Sendable {
    let path: FilePath

    /// The value of `Authorization` with the token that the file contains now.
    func authorization() throws(CommandFailure) -> String {
        let content: [UInt8]
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            content = try TokenFile.beginning(of: file)
        } catch {
            throw CommandFailure(.inputOutput, "token-file", "the token file \(path) cannot be read: \(error)")
        }
        let line = content.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        let token = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces)
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure(
                .usage, "token-file", "the first line of the token file \(path) has to be a token and nothing else")
        }
        return "Bearer " + token
    }

    private static func beginning(of file: FileDescriptor) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, count in
            do throws(Errno) {
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

extension ClientSettings {
    typealias Option = CommandOption<ClientSettings>

    static let putOptions: [Option] =
        [
            Option(
                "method", "METHOD", group: "Upload", values: .words(["PUT", "POST", "PATCH"]),
                "method of the first request\n[default: PUT, or POST for a URL that ends in /]"
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
                "create the upload with an empty request, and send content only\nafter the server has confirmed that it can resume; the default\nfor files of more than 4 MiB if the server announces that it\ncan resume"
            ) { $0.isCareful = true },
            Option(flag: "plain", group: "Upload", "send one ordinary request that cannot be resumed") {
                $0.isPlain = true
            },
            Option(
                "interop", "N", group: "Upload", values: .words(["3", "4", "5", "6", "7", "8", "rfc"]),
                "interop version of the draft, 3 to 8, or rfc for the future RFC,\nwhich has no version field [default: 8]"
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
                "append-size", "SIZE", group: "Upload", "maximum content of one request, for proxies with a limit"
            ) { settings, value throws(OptionError) in
                settings.appendSize = try positive(Quantity.bytes(value))
            },
            Option(
                flag: "digest", group: "Upload",
                "send the SHA-256 of the file (Repr-Digest); the file is then\nread twice"
            ) { $0.sendsDigest = true },
        ] + connection + [restart, state] + output + [verbose]

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
            }
        ] + connection + [restart, state] + output + [verbose]

    static let resumeOptions: [Option] = connection + output

    static let statusOptions: [Option] = [json]

    static let cancelOptions: [Option] = [header, tokenFile, caFile]

    static let healthOptions: [Option] = [caFile, quiet]

    // MARK: Shared options

    private static let connection: [Option] = [
        header, tokenFile, caFile,
        Option(
            "retries", "N", group: "Connection",
            "maximum number of retries; progress resets the count [default: 8]"
        ) { settings, value throws(OptionError) in
            settings.retries = try Quantity.count(value, 0...1_000_000)
        },
        Option(
            "stall-timeout", "DURATION", group: "Connection",
            "time without a byte in either direction after which the\nconnection counts as lost [default: 60s]"
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
    ) { $0.restarts = true }

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
        guard value > 0 else { throw OptionError("must be greater than 0") }
        return value
    }

    private static func absolute(_ argument: CommandArgument) throws(OptionError) -> FilePath {
        guard !argument.isEmpty else { throw OptionError("the file's name is empty") }
        guard let absolute = FilePath(argument.bytes).absolute else {
            throw OptionError("'\(argument)' is in a directory that does not exist")
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
