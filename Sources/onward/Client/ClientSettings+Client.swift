import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension ClientSettings {
    /// The client that these settings ask for.
    /// - Parameters:
    ///   - report: told the head of every message, with `--verbose`.
    ///   - save: keeps what an upload needs, before content is sent that would else be lost, and that a download is whole.
    func client(
        for report: TransferReport? = nil, saving save: (@Sendable (ResumeData) -> Void)? = nil
    ) throws(CommandFailure) -> TransferClient {
        var configuration = TransferClient.Configuration()
        configuration.creation = isPlain ? .plain : isCareful ? .careful : .automatic
        configuration.dialect = dialect
        configuration.maximumContent = appendSize
        if let retries { configuration.retry.triesWithoutProgress = retries }
        if let stallTimeout { configuration.stallTimeout = .seconds(stallTimeout) }
        configuration.rateLimit = rateLimit
        configuration.caPath = caFile
        configuration.sendsDigest = sendsDigest
        // The lock of the command is instead of them.
        configuration.issuesTickets = false
        if let save { configuration.checkpointed = { save($0) } }
        if isVerbose, let report {
            configuration.observer = { record in report.head(record) }
        }
        if let caFile, !ClientSettings.isReadable(caFile) {
            throw CommandFailure(.inputOutput, "cacert", "the certificates in \(caFile) cannot be read")
        }
        if let tokenFile {
            let file = TokenFile(path: tokenFile)
            // What is wrong with it is said before anything else happens.
            _ = try file.authorization()
            configuration.authorize = { request in
                let authorization = try file.authorization()
                request.fields.set("Authorization", authorization)
            }
        }
        return TransferClient(configuration)
    }

    /// The request that `data` names, with the fields of these settings.
    func request(_ data: ResumeData) -> TransferRequest {
        var request = data.request
        for field in fields { request.fields.remove(field.name) }
        for field in fields { request.fields.append(field.name, field.value) }
        return request
    }

    private static func isReadable(_ path: FilePath) -> Bool {
        (try? FileDescriptor.open(path, [.readOnly, .nonBlocking])) != nil
    }

    /// What a state remembers of these settings.
    var saved: SavedTransfer.Options {
        SavedTransfer.Options(tokenFile: tokenFile, caFile: caFile, appendSize: appendSize)
    }
}
