import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The upload or download of one file, from the first byte or from the position at which an earlier run stopped.
struct TransferJob: Sendable {
    let identity: TransferIdentity
    let request: TransferRequest
    let settings: ClientSettings
    /// The path of the state file, if the user chose it.
    let chosenState: FilePath?
    /// The opened source of an upload; `nil`: the file at the path of the identity.
    var source: FileSource?
    /// A directory above the destination of a download. No symbolic link below it is followed.
    var root: FilePath?
    /// Called with the result of a download that is complete.
    var downloaded: (@Sendable (DownloadResult) -> Void)?

    /// Creates the job of an upload.
    init(_ path: FilePath, to url: TransferURL, _ settings: ClientSettings) {
        request = TransferRequest(
            uploading: path.lastComponent, to: url.request, isCollection: url.isCollection, method: settings.method,
            fields: settings.fields)
        identity = .put(path, url, method: request.method)
        self.settings = settings
        chosenState = settings.stateFile
    }

    /// Creates the job of a download.
    init(_ url: TransferURL, to path: FilePath, _ settings: ClientSettings) {
        identity = .get(url, to: path)
        var request = TransferRequest(url.request, method: .get, fields: settings.fields)
        if let checksum = settings.checksum { request.expectedDigests[checksum.algorithm] = checksum.bytes }
        self.request = request
        self.settings = settings
        chosenState = settings.stateFile
    }

    /// Creates the job of a transfer that is resumed with the options of its state.
    init(_ saved: SavedTransfer, chosenState: FilePath?, _ settings: ClientSettings) {
        identity = saved.identity
        request = settings.request(saved.resumeData)
        self.settings = settings.completed(by: saved.options)
        self.chosenState = chosenState
    }

    /// - Parameter finished: the lists of files that were sent. If the command sends several files, the first state of
    ///   the upload is saved in its list instead of a file of its own.
    func run(
        _ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients, _ finished: SentFilesLists
    ) async -> ExitStatus {
        await run(report, signals, clients, finished, reusing: nil).status
    }

    /// Runs one of several transfers.
    /// - Parameter spare: the lock of a transfer that has ended.
    /// - Returns: the status, and the lock of this transfer.
    func run(
        _ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients, _ finished: SentFilesLists,
        reusing spare: StateLock?
    ) async -> (status: ExitStatus, lock: StateLock?) {
        // An error before the second call of `begin` is reported with these values.
        report.begin(identity, kept: 0, total: nil, reference: nil)
        do throws(CommandFailure) {
            let state = try CommandState.claim(identity, chosen: chosenState, lists: finished, reusing: spare)
            let status = await run(state, report, signals, clients, finished)
            return (status, state.release())
        } catch {
            return (report.ended(error), nil)
        }
    }

    /// Runs the transfer while its state is locked.
    private func run(
        _ state: CommandState, _ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients,
        _ finished: SentFilesLists
    ) async -> ExitStatus {
        do throws(CommandFailure) {
            let source = try openSource()
            if settings.shouldRestart { try await state.forget(settings, request, report) }
            let earlier = try state.load()
            var run = TransferRun(
                state: state, options: settings.saved, report: report, signals: signals,
                isRetryCountChosen: settings.retries != nil)
            if let earlier, identity.kind == .put, settings.hasOtherCredentials(than: earlier.options) {
                run.stateWithOtherCredentials = earlier
            }
            let client = try clients.client(for: settings, report)
            let data = earlier?.resumeData
            let isKept = data != nil || !settings.isPlain
            report.begin(
                identity, kept: data?.position ?? 0, total: data?.total, reference: isKept ? state.reference : nil)
            if let source { return await upload(source, client, run, data, finished) }
            return await download(client, run, data)
        } catch {
            return report.ended(error)
        }
    }

    /// - Parameter data: the resume data of an earlier run; `nil` for a new upload.
    private func upload(
        _ source: FileSource, _ client: TransferClient, _ run: TransferRun, _ data: ResumeData?,
        _ finished: SentFilesLists
    ) async -> ExitStatus {
        do throws(TransferError) {
            let upload: Upload
            do throws(TransferError) {
                if let data {
                    upload = try client.resumeUpload(data, from: source, request: request, store: run)
                } else {
                    upload = client.upload(request, from: source, store: run)
                }
            } catch {
                return run.report.ended(
                    CommandFailure(error), advice: error.code == .sourceChanged ? run.unsentAdvice : nil)
            }
            let result = try await run.follow(upload) { (observer) throws(TransferError) in
                try await upload.outcome(observer)
            }
            return await finish(result, run, source, finished)
        } catch {
            return run.end(error)
        }
    }

    private func download(_ client: TransferClient, _ run: TransferRun, _ data: ResumeData?) async -> ExitStatus {
        do throws(TransferError) {
            let download: Download
            do throws(TransferError) {
                download =
                    try data.map { data throws(TransferError) in
                        try client.resumeDownload(data, request: request, store: run)
                    } ?? client.download(request, to: .file(identity.path, beneath: root), store: run)
            } catch {
                return run.report.ended(CommandFailure(error))
            }
            let result = try await run.follow(download) { (observer) throws(TransferError) in
                try await download.outcome(observer)
            }
            downloaded?(result)
            run.report.completed(
                status: result.status.rawValue, location: identity.url, size: result.size,
                contentCoding: result.contentCoding)
            await run.state.remove()
            return .done
        } catch {
            return run.end(error)
        }
    }

    /// The source of an upload; `nil` for a download.
    private func openSource() throws(CommandFailure) -> FileSource? {
        guard identity.kind == .put, source == nil else { return source }
        do throws(TransferError) { return try FileSource(identity.path) } catch { throw CommandFailure(source: error) }
    }

    private func finish(
        _ result: UploadResult, _ run: TransferRun, _ source: FileSource, _ finished: SentFilesLists
    ) async -> ExitStatus {
        let status = result.status?.rawValue ?? 0
        let isDone = result.isResponseLost || result.status?.isSuccessful == true
        guard isDone else {
            await run.state.remove()
            let response = TransferResponse(
                status: result.status ?? Status(rawValue: 0), fields: result.fields, content: result.content)
            let action = status < 500 ? "rejected the content" : "failed to process the content"
            return run.report.ended(CommandFailure(response, action: action))
        }
        // A PUT that succeeds has created the resource that it was sent to.
        let location = result.location ?? (request.method == .put ? identity.url : nil)
        let entry = SentFilesList.Entry(identity.path, source.status, status: status, location: location)
        var isNoted = true
        do throws(Errno) {
            try await finished.addSent(entry, of: identity)
        } catch {
            isNoted = false
            run.report.warn(
                "\(CommandState.subject(of: identity)) is complete, but this cannot be recorded: \(error.text)")
        }
        // This report precedes the removal of the state: if the process is killed in between, the next process receives
        // the server's response again and sends nothing twice.
        run.report.completed(
            status: status, location: location, size: result.acknowledged, content: result.content,
            isResponseLost: result.isResponseLost)
        if isNoted { run.state.removeSent() }
        return .done
    }
}

/// The clients of one command. All transfers with the same options use one client, so that they share connections and
/// the known properties of servers.
final class CommandClients: Sendable {
    private let clients = Monitor<[SavedTransfer.Options: TransferClient]>([:])

    func client(for settings: ClientSettings, _ report: TransferReport) throws(CommandFailure) -> TransferClient {
        // All other settings are those of the command line.
        let key = settings.saved
        if let client = clients.withLock({ $0[key] }) { return client }
        let client = try settings.client(for: report)
        clients.withLock { $0[key] = client }
        return client
    }

    /// Whether the server has announced an upload resource for the last creation to the origin of this URI, as far as
    /// the client for `settings` has cached it (for five minutes).
    func hasAnnouncedUploads(to uri: String, _ settings: ClientSettings) -> Bool {
        clients.withLock { $0[settings.saved] }?.hasAnnouncedUploads(to: uri) == true
    }

    func shutDown() async {
        let ended = clients.withLock { clients in
            defer { clients = [:] }
            return Array(clients.values)
        }
        for client in ended { await client.shutDown() }
    }
}

extension CommandState {
    /// Removes the state of an earlier run, and its upload on the server if that can be done quickly.
    /// - Parameter request: the request of the new transfer; its credentials authorize the deletion.
    /// - Throws: if the user named a file that is not a state of this command.
    func forget(
        _ settings: ClientSettings, _ request: TransferRequest, _ report: TransferReport
    ) async throws(CommandFailure) {
        let earlier: SavedTransfer?
        do throws(CommandFailure) {
            earlier = try load()
        } catch {
            // The file that the user named may be any file, so it is not removed.
            if isChosen { throw error }
            earlier = nil
        }
        if let earlier {
            var quickSettings = settings.completed(by: earlier.options)
            quickSettings.retries = 0
            quickSettings.stallTimeout = 5
            let client = try quickSettings.client()
            let what = earlier.identity.kind == .put ? "upload" : "partial file"
            do throws(TransferError) {
                let isDeleted = try await client.discard(earlier.resumeData, request: request)
                if !isDeleted && settings.hasOtherCredentials(than: earlier.options) {
                    report.warn(
                        "the upload of an earlier run could not be deleted: the server has no such upload for"
                            + " these credentials. The upload was started with other credentials:"
                            + " \(earlier.options.credentials)")
                }
            } catch {
                report.warn("the \(what) of an earlier run could not be deleted: \(CommandFailure(error).message)")
            }
            await client.shutDown()
        }
        await remove()
    }
}
