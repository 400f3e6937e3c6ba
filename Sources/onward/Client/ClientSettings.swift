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
    /// Seconds.
    var stallTimeout: Int64?
    /// Bytes a second.
    var rateLimit: Int64?
    var caFile: FilePath?
    var restarts = false
    var isVerbose = false
    var isJSON = false
    var isQuiet = false

    // Of put
    var method: Method?
    var isCareful = false
    var isPlain = false
    var dialect = Dialect.interop8
    var appendSize: Int64?
    var sendsDigest = false

    // Of get
    var output: FilePath?

    /// What two options together contradict.
    func checked() throws(OptionError) -> ClientSettings {
        if isCareful && isPlain { throw OptionError("--careful and --plain exclude each other") }
        if isPlain && appendSize != nil {
            throw OptionError("--plain is one request: --append-size cannot bound it")
        }
        if tokenFile != nil && fields.contains("Authorization") {
            throw OptionError("--token-file and --header 'Authorization: ...' exclude each other")
        }
        return self
    }

    /// The same, completed with the options of a state.
    func completed(by saved: SavedTransfer.Options) -> ClientSettings {
        var result = self
        if tokenFile == nil && !fields.contains("Authorization") { result.tokenFile = saved.tokenFile }
        result.caFile = caFile ?? saved.caFile
        result.appendSize = appendSize ?? saved.appendSize
        return result
    }

    /// Whether requests have other credentials than those of a state. A server that then answers 404 may still have the
    /// upload.
    func hasOtherCredentials(than saved: SavedTransfer.Options) -> Bool {
        if let tokenFile { return tokenFile != saved.tokenFile }
        return saved.tokenFile != nil && fields.contains("Authorization")
    }
}
