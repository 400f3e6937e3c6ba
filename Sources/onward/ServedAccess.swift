import SystemCalls
import TransferServer

/// Who may use the server, by the files that were named; they are read again when the operator asks for it.
struct ServedAccess {
    private let tokenFile: String?
    private let authorizer: TokenAuthorizer?
    private let warnings: [String]

    init(_ settings: ServeSettings) throws(OptionError) {
        tokenFile = settings.tokenFile
        guard let path = settings.tokenFile else {
            authorizer = nil
            warnings = []
            return
        }
        let (list, warnings) = try Self.tokens(in: path)
        authorizer = TokenAuthorizer(list, allowsPublicReading: settings.allowsPublicReading)
        self.warnings = warnings
    }

    func applied(to configuration: ServerConfiguration) -> ServerConfiguration {
        var configuration = configuration
        configuration.authorizer = authorizer
        return configuration
    }

    /// Logs what is doubtful about the files.
    func tell(_ server: Server) {
        for warning in warnings { server.note(.warning, warning) }
    }

    /// Reads the files again. What is wrong with them leaves everything as it was.
    func reload(_ server: Server) {
        guard let tokenFile, let authorizer else {
            server.note(.info, "asked to reload, but there is no token file")
            return
        }
        do throws(OptionError) {
            let (list, warnings) = try Self.tokens(in: tokenFile)
            authorizer.replace(with: list)
            for warning in warnings { server.note(.warning, warning) }
            server.note(.info, "\(tokenFile) was read again: \(list.count) tokens")
        } catch {
            server.note(.error, "the tokens stay as they were: \(error.message)")
        }
    }

    private static func tokens(in path: String) throws(OptionError) -> (TokenList, [String]) {
        let text: String
        var warnings: [String] = []
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            let status = try file.status()
            guard !status.isDirectory else { throw .isDirectory }
            let bytes = try file.content(atMost: 16 << 20)
            text = String(decoding: bytes, as: UTF8.self)
            if status.isRegular && status.permissions & 0o077 != 0 {
                warnings.append("\(path) can be read or written by other users; 'chmod 600' it")
            }
        } catch {
            throw OptionError("the token file \(path) cannot be read: \(error)")
        }
        do throws(TokenList.Malformed) {
            let list = try TokenList(parsing: text)
            if list.count == 0 { warnings.append("\(path) names no token: nobody can be let in") }
            for name in list.namesWithShortTokens {
                warnings.append("\(path): a token of \(name) is so short that it can be guessed")
            }
            return (list, warnings)
        } catch {
            throw OptionError("\(path), line \(error.line): \(error.reason)")
        }
    }
}
