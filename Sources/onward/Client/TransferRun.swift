import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// One running transfer of a command: reports its events and saves its checkpoints in the state file.
struct TransferRun: Sendable {
    /// The number of further attempts to resolve the name of a host from which nothing has been received. After them
    /// the transfer fails.
    private static let retriesForHost = 2

    let state: CommandState
    let options: SavedTransfer.Options
    let report: TransferReport
    let signals: SignalWatch
    /// Whether the user chose the number of attempts.
    let isRetryCountChosen: Bool
    /// The state of an earlier run with other credentials. A server answers 404 for the upload of another user.
    var stateWithOtherCredentials: SavedTransfer?

    /// Runs `transfer` to its end.
    /// - Parameter outcome: the result of the transfer.
    /// - Throws: the error with which the transfer ended.
    func follow<Success: Sendable>(
        _ transfer: any Transfer, outcome: @escaping @Sendable () async throws(TransferError) -> Success
    ) async throws(TransferError) -> Success {
        let report = report
        report.measure(transfer.progress)
        let ticking = report.everyHalfSecond { report.refresh() }
        defer { ticking?.cancel() }
        signals.onResize { report.refresh() }
        let stop: @Sendable () -> Void = {
            report.noteStop()
            Task { _ = await transfer.pause() }
        }
        let result = await signals.stopping(by: stop) { () -> Result<Success, TransferError> in
            if let error = await listen(to: transfer) { return .failure(error) }
            do throws(TransferError) { return .success(try await outcome()) } catch { return .failure(error) }
        }
        guard case .failure(let error) = result else { return try result.get() }
        if error.code == .gone, let stateWithOtherCredentials {
            await state.save(
                stateWithOtherCredentials.resumeData, options: stateWithOtherCredentials.options, sent: nil)
        } else if error.resumeData == nil {
            // If there is resume data, the driver has already saved it.
            await state.remove()
        }
        throw error
    }

    /// Runs the request of a short upload to its end.
    func follow(_ upload: ShortUpload, size: Int64) async -> ShortUpload.Outcome {
        let stop: @Sendable () -> Void = { [report] in
            report.noteStop()
            upload.cancel()
        }
        let outcome = await signals.stopping(by: stop) { await upload.outcome(store: self) }
        switch outcome {
        case .completed:
            report.report(.started(total: size))
            report.report(.progress(sent: size, acknowledged: size, total: size))
        case .unfinished(_, isStopped: true): report.report(.started(total: size))
        // The transfer reports its start.
        case .unfinished(_, isStopped: false): break
        }
        return outcome
    }

    /// Reports the events of a transfer until its end.
    /// - Returns: an error if this method ended the transfer because the host cannot be found; otherwise `nil`.
    private func listen(to transfer: any Transfer) async -> TransferError? {
        var failedLookups = 0
        for await event in transfer.events() {
            // Without resume data, there is no upload yet: its creation was refused.
            if case .interrupted(let error, _) = event, transfer.resumeData == nil,
                error.status == .tooManyRequests || error.status == .serviceUnavailable
            {
                report.noteFullServer()
            }
            if case .interrupted(let error, _) = event, error.code == .hostNotFound, !isRetryCountChosen,
                transfer.resumeData == nil
            {
                failedLookups += 1
                if failedLookups > TransferRun.retriesForHost {
                    _ = await transfer.pause()
                    return error
                }
            }
            report.report(event)
        }
        return nil
    }

    /// Reports the error with which the transfer ended, and what the user can do.
    /// - Returns: the command's exit status.
    func end(_ error: TransferError) -> ExitStatus {
        if error.code == .gone, let stateWithOtherCredentials {
            return report.ended(
                CommandFailure(
                    .notAllowed, "unauthorized",
                    "The server has no such upload for these credentials. The upload was started with other credentials:"
                        + " \(stateWithOtherCredentials.options.credentials)."),
                advice: "The state was kept; --restart starts again from the beginning.")
        }
        var failure = CommandFailure(error)
        let isKept = error.resumeData != nil
        // This is the status of a permanent failure, because the same command does not succeed with a wrong host name.
        if !isKept, error.code == .hostNotFound { failure.status = .unavailable }
        if isKept, let reason = state.saveFailure {
            failure = CommandFailure(
                .inputOutput, "state-unusable",
                "\(failure.message) The state to resume from could not be saved: \(reason)")
            return report.ended(failure, advice: olderStateAdvice)
        }
        return report.ended(failure, advice: advice(failure, kept: error.resumeData))
    }

    /// How to resume from an earlier state if the last one could not be saved.
    private var olderStateAdvice: String? {
        guard let position = state.savedPosition else { return nil }
        return
            "The state that was saved after \(Amount.bytes(position)) is still usable. Correct the cause of the error,"
            + " then run the same command to resume from there."
    }

    /// Returns the advice for a source that has changed.
    var unsentAdvice: String {
        let reference = ProgressMessages.shellWord(state.reference)
        return "Nothing was sent in this run. Use --restart to start again from the beginning, or"
            + " 'onward cancel \(reference)' to discard the interrupted upload."
    }

    private func advice(_ failure: CommandFailure, kept: ResumeData?) -> String? {
        let isKept = kept != nil
        switch failure.status {
        case .tryAgain where isKept && failure.code == TransferError.Code.unexpectedResponse.rawValue:
            return ProgressMessages.advice(report.position, reference: state.reference)
                + "\nIf that response is the new content of the file, --restart downloads it from the beginning."
        case .tryAgain: return ProgressMessages.advice(report.position, reference: isKept ? state.reference : nil)
        case .sourceChanged:
            return isKept ? unsentAdvice : "Run the same command to send the file from the beginning."
        case .notAllowed where failure.response == 407:
            return """
                Give the user and the password in the URL of the proxy, with special characters percent-encoded:
                https_proxy=http://USER:PASSWORD@HOST:PORT. For http URLs, set http_proxy in the same way.
                """
        case .notAllowed where failure.code == TransferError.Code.proxyRefused.rawValue:
            return "Set no_proxy=HOST in the environment to connect to HOST without the proxy."
        case .notAllowed:
            return "Give credentials with --token-file or --header"
                + (isKept ? "; then run the same command again to resume." : ".")
        case .unavailable where failure.response == .methodNotAllowed:
            return "If the URL is that of a collection, end it with a slash."
        case .unavailable where failure.code == TransferError.Code.gone.rawValue:
            return "The same command starts again from the beginning."
        case .unavailable where failure.code == TransferError.Code.resumptionUnsupported.rawValue:
            return "Try again without --careful and --append-size: they need a server that can resume."
        case .unavailable, .inputOutput:
            return kept.map { ProgressMessages.kept($0, reference: state.reference) }
        default: return nil
        }
    }
}

extension TransferRun: CheckpointStore {
    func save(_ data: ResumeData, sent: Int64?) async {
        let hadFailed = state.saveFailure != nil
        await state.save(data, options: options, sent: sent)
        if !hadFailed, let failure = state.saveFailure {
            report.warn("the state to resume from cannot be saved: \(failure)")
        }
    }
}
