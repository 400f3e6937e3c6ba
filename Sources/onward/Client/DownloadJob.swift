import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// One file to download, from the first byte or from where it stopped.
struct DownloadJob: Sendable {
    let identity: TransferIdentity
    let request: TransferRequest
    let settings: ClientSettings
    /// Where the state lies, if the user says so.
    let chosenState: FilePath?

    init(_ url: TransferURL, to path: FilePath, _ settings: ClientSettings) {
        identity = .get(url, to: path)
        request = TransferRequest(url.request, method: .get, fields: settings.fields)
        self.settings = settings
        chosenState = settings.stateFile
    }

    /// The rest of a download, with what its state remembers.
    init(_ saved: SavedTransfer, _ resumeData: ResumeData, chosenState: FilePath?, _ settings: ClientSettings) {
        identity = saved.identity
        request = settings.request(resumeData)
        self.settings = settings.completed(by: saved.options)
        self.chosenState = chosenState
    }

    func run(_ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients) async -> ExitStatus {
        signals.endAtOnce()
        report.begin(identity, kept: 0, total: nil, reference: chosenState ?? FilePath(identity.name))
        do throws(CommandFailure) {
            let state = try StateFile.claim(identity, chosen: chosenState)
            // The lock lasts as long as this.
            defer { withExtendedLifetime(state) {} }
            if settings.restarts { try await state.forget(settings, request, report) }
            let run = TransferRun(
                state: state, options: settings.saved, report: report, signals: signals,
                areTriesChosen: settings.retries != nil)
            let client = try clients.client(for: settings, run)
            defer { clients.release() }
            return await download(client, run)
        } catch {
            return report.ended(error)
        }
    }

    private func download(_ client: TransferClient, _ run: TransferRun) async -> ExitStatus {
        let report = run.report
        let download: Download
        do throws(CommandFailure) {
            let data = try run.state.load()?.resumeData
            report.begin(identity, kept: data?.position ?? 0, total: data?.total, reference: run.state.reference)
            download = try prepare(client, data)
        } catch {
            return report.ended(error)
        }
        if let error = await run.follow(download) { return run.tell(error) }
        do throws(TransferError) {
            let result = try await download.value()
            report.completed(
                status: result.status.rawValue, location: identity.url, size: result.size,
                contentCoding: result.contentCoding)
            run.state.remove()
            return .done
        } catch {
            return run.tell(error)
        }
    }

    private func prepare(_ client: TransferClient, _ data: ResumeData?) throws(CommandFailure) -> Download {
        guard let data else { return client.download(request, to: .file(identity.path)) }
        do throws(TransferError) {
            return try client.resumeDownload(data, request: request)
        } catch {
            throw CommandFailure(error)
        }
    }
}
