import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension ClientSettings {
    /// The client for these settings.
    /// - Parameter report: receives the head of every message, with `--verbose`.
    func client(for report: TransferReport? = nil) throws(CommandFailure) -> TransferClient {
        var configuration = TransferClient.Configuration()
        configuration.creation = isPlain ? .plain : isCareful ? .careful : .automatic
        configuration.dialect = dialect
        configuration.maximumContent = appendSize
        if let retries { configuration.retry.triesWithoutProgress = retries }
        if let stallTimeout { configuration.stallTimeout = .seconds(stallTimeout) }
        configuration.rateLimit = rateLimit
        configuration.caPath = caFile
        configuration.sendsDigest = sendsDigest
        // The lock of the command replaces them.
        configuration.issuesTickets = false
        if isVerbose, let report {
            configuration.observer = { record in report.head(record) }
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

    /// The settings that a state file keeps.
    var saved: SavedTransfer.Options {
        SavedTransfer.Options(tokenFile: tokenFile, caFile: caFile, appendSize: appendSize)
    }
}
