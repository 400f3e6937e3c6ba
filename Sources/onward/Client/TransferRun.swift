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
    /// - Parameter run: runs it, and calls the closure with each event.
    /// - Throws: the error with which the transfer ended.
    func follow<Success: Sendable>(
        _ transfer: any Transfer,
        run: (@escaping @Sendable (TransferEvent) -> Void) async throws(TransferError) -> Success
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
        let lookups = Monitor(FailedLookups())
        let result = await signals.stopping(by: stop) { () -> Result<Success, TransferError> in
            do throws(TransferError) {
                return .success(try await run { handle($0, of: transfer, lookups) })
            } catch {
                return .failure(lookups.withLock { $0.failure } ?? error)
            }
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

    /// The attempts to find the host that have failed.
    private struct FailedLookups {
        var count = 0
        /// The error with which the transfer ends because the host cannot be found.
        var failure: TransferError?

        /// - Returns: whether the transfer has to be stopped now.
        mutating func note(_ error: TransferError) -> Bool {
            guard failure == nil else { return false }
            count += 1
            if count > TransferRun.retriesForHost { failure = error }
            return failure != nil
        }
    }

    /// Reports an event of a transfer. Stops the transfer if the host cannot be found.
    private func handle(_ event: TransferEvent, of transfer: any Transfer, _ lookups: Monitor<FailedLookups>) {
        // Without resume data, there is no upload yet: its creation was refused.
        if case .interrupted(let error, _) = event, transfer.resumeData == nil {
            if error.status == .tooManyRequests || error.status == .serviceUnavailable { report.noteFullServer() }
            if error.code == .hostNotFound, !isRetryCountChosen, lookups.withLock({ $0.note(error) }) {
                Task { _ = await transfer.pause() }
                return
            }
        }
        report.report(event)
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

    /// The message that describes how to resume from an earlier state if the last one could not be saved.
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
