import ResumableTransfer
import SystemCalls

/// One transfer on its way: what happens is told, and what a later run needs is kept.
struct TransferRun: Sendable {
    /// Nanoseconds after which the position of an upload that has moved on is kept again.
    private static let savePause: Int64 = 1_000_000_000

    /// Further tries to find a host of which nothing has been heard, before its name is taken for wrong.
    private static let triesForHost = 2

    let state: StateFile
    let options: SavedTransfer.Options
    let report: TransferReport
    let signals: SignalWatch
    /// Whether the user said how often to try.
    let areTriesChosen: Bool
    /// What an earlier run kept that had other credentials. Whom an upload does not belong to is told that there is none.
    var othersState: (options: SavedTransfer.Options, resumeData: ResumeData)?

    /// Runs `transfer` to its end.
    /// - Returns: why it ended without success.
    func follow(_ transfer: any Transfer) async -> TransferError? {
        let report = report
        let ticking = Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(500))
                report.refresh()
            }
        }
        defer { ticking.cancel() }
        signals.onResize { report.refresh() }
        let stop: @Sendable () -> Void = {
            report.note("Stopping; once more ends it at once.")
            Task { _ = await transfer.pause() }
        }
        return await signals.stopping(by: stop) {
            await listen(to: transfer)
        }
    }

    private func listen(to transfer: any Transfer) async -> TransferError? {
        var kept = report.position.moved
        var keptAt = SystemClock.monotonicNanoseconds()
        var misses = 0
        for await event in transfer.events {
            if case .interrupted(let error, _) = event, error.code == .hostNotFound, !areTriesChosen,
                transfer.checkpoint == nil
            {
                misses += 1
                if misses > TransferRun.triesForHost {
                    _ = await transfer.pause()
                    keep(nil)
                    return error
                }
            }
            report.take(event)
            switch event {
            case .progress:
                let now = SystemClock.monotonicNanoseconds()
                let position = report.position.moved
                guard position > kept, now - keptAt >= TransferRun.savePause, let data = transfer.checkpoint else {
                    break
                }
                save(data)
                kept = position
                keptAt = now
            case .failed(let error) where error.code == .gone && othersState != nil:
                if let othersState { state.save(othersState.resumeData, options: othersState.options, sent: nil) }
                return error
            case .failed(let error):
                keep(error.resumeData ?? transfer.checkpoint)
                return error
            // A checkpoint was saved before it became an event.
            case .checkpoint, .started, .received, .informational, .interrupted, .resumed, .completed: break
            }
        }
        return nil
    }

    func save(_ data: ResumeData) {
        let hadFailed = state.saveFailure != nil
        let position = report.position
        state.save(data, options: options, sent: position.kind == .put ? position.moved : nil)
        if !hadFailed, let failure = state.saveFailure {
            report.warn("what is needed to go on later cannot be saved: \(failure)")
        }
    }

    private func keep(_ data: ResumeData?) {
        if let data { save(data) } else { state.remove() }
    }

    /// Tells how it ended, and what can be done about it.
    /// - Returns: the command's exit status.
    func tell(_ error: TransferError) -> ExitStatus {
        if error.code == .gone, let othersState {
            return report.ended(
                CommandFailure(
                    .notAllowed, "unauthorized",
                    "The server does not know the upload for these credentials; it was begun with other ones:"
                        + " \(othersState.options.credentials)."),
                advice: "Nothing was forgotten; --restart begins anew.")
        }
        var failure = CommandFailure(error)
        let isKept = error.resumeData != nil
        // A name that is wrong stays so.
        if !isKept, error.code == .hostNotFound { failure.status = .unavailable }
        if isKept, let reason = state.saveFailure {
            failure = CommandFailure(
                .inputOutput, "state-unusable",
                "\(failure.message) What is needed to resume could not be saved: \(reason)")
            return report.ended(failure, advice: olderStateAdvice)
        }
        return report.ended(failure, advice: advice(failure, kept: error.resumeData))
    }

    /// What an earlier state is good for, where the last one could not be saved.
    private var olderStateAdvice: String? {
        guard let position = state.savedPosition else { return nil }
        return
            "An earlier state is still usable, at \(Amount.bytes(position)). When the state can be saved again, run the"
            + " same command to resume from there."
    }

    /// What can be done about a source that is another one than before.
    var unsentAdvice: String {
        let reference = Narration.shellWord(state.reference)
        return "Nothing was sent. --restart begins anew, 'onward cancel \(reference)' forgets it."
    }

    private func advice(_ failure: CommandFailure, kept: ResumeData?) -> String? {
        let isKept = kept != nil
        switch failure.status {
        case .tryAgain where isKept && failure.code == TransferError.Code.unexpectedResponse.rawValue:
            return Narration.advice(report.position, reference: state.reference)
                + "\nIf that is the file now, --restart fetches it from the beginning."
        case .tryAgain: return Narration.advice(report.position, reference: isKept ? state.reference : nil)
        case .sourceChanged:
            return isKept ? unsentAdvice : "The same command sends it anew."
        case .notAllowed where failure.response == 407:
            return """
                Give user and password of the proxy in its URL, percent-encoded if need be:
                https_proxy=http://USER:PASSWORD@HOST:PORT, http_proxy for http URLs.
                """
        case .notAllowed where failure.code == TransferError.Code.proxyRefused.rawValue:
            return "no_proxy=HOST in the environment goes there without the proxy."
        case .notAllowed:
            return "Give credentials with --token-file or --header"
                + (isKept ? "; the same command goes on then." : ".")
        case .unavailable where failure.code == TransferError.Code.gone.rawValue: return "The same command begins anew."
        case .unavailable where failure.code == TransferError.Code.resumptionUnsupported.rawValue:
            return "Try again without --careful and --append-size: they need a server that can resume."
        case .unavailable, .inputOutput:
            return kept.map { Narration.kept($0, reference: state.reference) }
        default: return nil
        }
    }
}
