import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// One file to upload, from the first byte or from where it stopped.
struct UploadJob: Sendable {
    let identity: TransferIdentity
    let request: TransferRequest
    let settings: ClientSettings
    /// Where the state lies, if the user says so.
    let chosenState: FilePath?

    init(_ path: FilePath, to url: TransferURL, _ settings: ClientSettings) {
        let method = settings.method ?? (url.isCollection ? .post : .put)
        identity = .put(path, url, method: method)
        var fields = settings.fields
        if url.isCollection && !fields.contains("Content-Disposition") {
            fields.append(
                "Content-Disposition",
                ContentDisposition.serialized(type: "inline", filename: identity.fileName.percentEscapedText))
        }
        request = TransferRequest(url.request, method: method, fields: fields)
        self.settings = settings
        chosenState = settings.stateFile
    }

    /// The rest of an upload, with what its state remembers.
    init(_ saved: SavedTransfer, _ resumeData: ResumeData, chosenState: FilePath?, _ settings: ClientSettings) {
        identity = saved.identity
        request = settings.request(resumeData)
        self.settings = settings.completed(by: saved.options)
        self.chosenState = chosenState
    }

    /// - Parameter finished: where it is noted that the file was sent.
    func run(
        _ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients, _ finished: FinishedFiles
    ) async -> ExitStatus {
        signals.endAtOnce()
        report.begin(identity, kept: 0, total: nil, reference: chosenState ?? FilePath(identity.name))
        do throws(CommandFailure) {
            let state = try StateFile.claim(identity, chosen: chosenState)
            // The lock lasts as long as this.
            defer { withExtendedLifetime(state) {} }
            let source = try Self.source(identity.path)
            if settings.restarts { try await state.forget(settings, request, report) }
            let earlier = try state.load()
            var run = TransferRun(
                state: state, options: settings.saved, report: report, signals: signals,
                areTriesChosen: settings.retries != nil)
            if let (saved, resumeData) = earlier, settings.hasOtherCredentials(than: saved.options) {
                run.othersState = (saved.options, resumeData)
            }
            let client = try clients.client(for: settings, run)
            defer { clients.release() }
            return await upload(source, client, run, earlier?.resumeData, finished)
        } catch {
            return report.ended(error)
        }
    }

    /// - Parameter data: what an earlier run kept.
    private func upload(
        _ source: FileSource, _ client: TransferClient, _ run: TransferRun, _ data: ResumeData?,
        _ finished: FinishedFiles
    ) async -> ExitStatus {
        let report = run.report
        let upload: Upload
        do throws(CommandFailure) {
            let isKept = data != nil || !settings.isPlain
            report.begin(
                identity, kept: data?.position ?? 0, total: data?.total,
                reference: isKept ? run.state.reference : nil)
            upload = try prepare(client, data, source)
        } catch {
            return report.ended(error, advice: error.status == .sourceChanged ? run.unsentAdvice : nil)
        }
        if let error = await run.follow(upload) { return run.tell(error) }
        do throws(TransferError) {
            return finish(try await upload.value(), run, source, finished)
        } catch {
            return run.tell(error)
        }
    }

    private static func source(_ path: FilePath) throws(CommandFailure) -> FileSource {
        do throws(TransferError) {
            return try FileSource(path)
        } catch {
            var failure = CommandFailure(error)
            // One that cannot be opened is as good as none (sysexits.h: EX_NOINPUT).
            failure.status = .noSource
            throw failure
        }
    }

    private func prepare(
        _ client: TransferClient, _ data: ResumeData?, _ source: FileSource
    ) throws(CommandFailure) -> Upload {
        guard let data else { return client.upload(request, from: source) }
        do throws(TransferError) {
            return try client.resumeUpload(data, from: source, request: request)
        } catch {
            throw CommandFailure(error)
        }
    }

    private func finish(
        _ result: UploadResult, _ run: TransferRun, _ source: FileSource, _ finished: FinishedFiles
    ) -> ExitStatus {
        let status = result.status?.rawValue ?? 0
        let isDone = result.isResponseLost || result.status?.isSuccessful == true
        guard isDone else {
            run.state.remove()
            let isForbidden = [401, 403, 407].contains(status)
            let reason =
                ResponseReason.of(content: result.content, fields: result.fields).map { " It says: \($0)" } ?? ""
            let failure = CommandFailure(
                status: isForbidden ? .notAllowed : .unavailable, code: isForbidden ? "unauthorized" : "refused",
                message: "The server refused what was uploaded (\(status)).\(reason)", response: result.status)
            return run.report.ended(failure)
        }
        // A PUT that succeeds has made the resource that it was sent to.
        let location = result.location ?? (request.method == .put ? identity.url : nil)
        let entry = SentFilesList.Entry(identity.path, source.status, status: status, location: location)
        var isNoted = true
        do throws(Errno) {
            try finished.add(entry, of: identity)
        } catch {
            isNoted = false
            run.report.warn(
                "that \(identity.fileName) has been sent cannot be noted: \(DisplayText.reason("\(error)"))")
        }
        // Before the state goes: a process that is killed in between leaves the server's answer to the next one, which
        // sends nothing twice.
        run.report.completed(
            status: status, location: location, size: result.acknowledged, isAnswerLost: result.isResponseLost)
        if isNoted { run.state.remove() }
        return .done
    }
}
