import CommandLineInterface
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
