import Dispatch
import Foundation
import FoundationNetworking
import ResumableTransfer
import SystemCalls

extension TransferTask {
    // MARK: Calls of the application

    func resumeTransfer() { perform(core.withLock { $0.machine.resume() }) }

    func suspendTransfer() { perform(core.withLock { $0.machine.suspend() }) }

    func cancelTransfer() { perform(core.withLock { $0.machine.cancel() }) }

    func cancelTransfer(byProducingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        let command: TaskMachine.Command? = core.withLock { state in
            guard !state.machine.isOver, state.machine.earlyEnd != .cancel else { return nil }
            state.handlers.append(handler)
            return state.machine.cancelKeepingData()
        }
        guard let command else { return core.deliver { handler(nil) } }
        perform(command)
    }

    /// Ends the task because of `interruption`.
    private func abort(_ interruption: TransferError) {
        let command = core.withLock { state in
            let command = state.machine.abort()
            if command != .nothing { state.interruption = interruption }
            return command
        }
        perform(command)
    }

    private func perform(_ command: TaskMachine.Command) {
        switch command {
        case .nothing: return
        case .start: Task { await run() }
        case .pause:
            // If the run has no transfer yet, it handles the pause as soon as it has one.
            guard let transfer = core.withLock({ $0.transfer }) else { return }
            Task { _ = await transfer.pause() }
        case .endNow, .end:
            releaseTransfer()
            end(.failure(TransferError(.paused, "The task was canceled.")))
        }
    }

    /// Cancels the transfer of a canceled task, and discards the upload or the partial file of its resume data. This
    /// work continues after the end of the task, because a server may be slow to respond.
    private func releaseTransfer() {
        let (transfer, data) = core.withLock { state -> ((any Transfer)?, ResumeData?) in
            guard state.machine.earlyEnd == .cancel else { return (nil, nil) }
            defer {
                state.transfer = nil
                // Data that was not used yet still belongs to the caller.
                if state.hasBegun { state.data = nil }
            }
            return (state.transfer, state.hasBegun ? state.data : nil)
        }
        if let transfer { Task { await transfer.cancel() } }
        discard(data)
    }

    /// Deletes the upload resource or the partial file of data that nothing uses any more.
    private func discard(_ data: ResumeData?) {
        guard let data, let client = core.transferSession?.client else { return }
        let exchanges = exchanges
        let request = core.context?.request
        Task { try? await client.discard(data, request: request, handler: exchanges) }
    }

    // MARK: Runs

    /// Participates in the exchanges of a run.
    var exchanges: TaskExchanges? { core.transferSession.map { TaskExchanges(self, $0.settings.storages) } }

    /// The URL of the proxy; `nil` if the settings have none.
    var proxy: URL? { core.connection?.proxy.flatMap { URL(string: $0) } }

    private func run() async {
        let beginning: (data: ResumeData?, isFirst: Bool)? = core.withLock { state in
            guard !state.machine.isOver else { return nil }
            defer {
                state.data = nil
                state.hasBegun = true
            }
            state.isAwaitingResumption = state.data != nil
            return (state.data, !state.hasBegun)
        }
        guard let (data, isFirst) = beginning else { return }
        if isFirst { startTimer() }
        let run: TaskRun
        do throws(TransferError) {
            run = try await opened(data).get()
        } catch {
            return runEnded(.failure(error))
        }
        let transfer = run.transfer
        let command = core.withLock { state in
            state.transfer = transfer
            return state.machine.commandForNewTransfer
        }
        switch command {
        case .nothing, .start, .end: break
        case .pause: Task { _ = await transfer.pause() }
        case .endNow: return await transfer.cancel()
        }
        for await event in transfer.events() where !core.withLock({ $0.machine.isOver }) {
            if case .interrupted(let error, _) = event {
                let canResume = transfer.resumeData != nil
                if !InterruptionPolicy.tolerates(error, canResume: canResume) { abort(error) }
            }
            handle(event)
        }
        runEnded(await run.outcome())
    }

    /// Opens the transfer of a run. This reads files and may take long, so it does not use a thread that Swift's tasks
    /// share.
    private func opened(_ data: ResumeData?) async -> Result<TaskRun, TransferError> {
        if let refusal = core.refusal { return .failure(refusal) }
        // The result is passed under a lock, which ThreadSanitizer detects. It does not detect a continuation that
        // another queue resumes.
        let run = Monitor<Result<TaskRun, TransferError>?>(nil)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let result = Result { () throws(TransferError) in try self.open(data) }
                run.withLock { $0 = result }
                continuation.resume()
            }
        }
        return run.withLock { $0 } ?? .failure(TransferError(.internalFailure, "The transfer was not created."))
    }

    private func runEnded(_ result: Result<TaskCompletion, TransferError>) {
        var error: TransferError?
        if case .failure(let failure) = result { error = failure }
        let command = core.withLock { state in
            state.transfer = nil
            let command = state.machine.runEnded(isPaused: error?.code == .paused)
            // The data for the next run.
            if !state.machine.isOver { state.data = error?.resumeData }
            return command
        }
        switch command {
        case .start: perform(.start)
        case .end: end(result)
        case .nothing: if core.withLock({ $0.machine.isOver }) { discard(result) }
        case .pause, .endNow: return
        }
    }

    /// Removes the file or the upload of a run that ended by itself before a cancellation reached it.
    private func discard(_ result: Result<TaskCompletion, TransferError>) {
        switch result {
        case .success(let completion):
            completion.file?.removeFile()
        case .failure(let error):
            discard(error.resumeData)
        }
    }

    private func startTimer() {
        let limit = core.session.configuration.timeoutIntervalForResource
        guard limit > 0, limit < 1e9 else { return }
        let timer = Task { [weak self] in
            guard (try? await Task.sleep(for: .seconds(limit))) != nil else { return }
            self?.abort(TransferError(.timedOut, "The transfer took longer than the session allows."))
        }
        let isLate = core.withLock { state in
            state.timer = timer
            return state.machine.isOver
        }
        if isLate { timer.cancel() }
    }

    // MARK: The end

    /// - Parameter result: the result of the last run; a pause if something else has ended the task.
    private func end(_ result: Result<TaskCompletion, TransferError>) {
        let (earlyEnd, held, interruption, handlers, timer) = core.withLock { state in
            defer {
                state.handlers = []
                state.timer = nil
            }
            return (state.machine.earlyEnd, state.data, state.interruption, state.handlers, state.timer)
        }
        timer?.cancel()
        var ending: Result<TaskCompletion, URLError>
        var response: HTTPURLResponse?
        var resumeData: ResumeData?
        switch result {
        case .success(let completion):
            ending = .success(completion)
            response = completion.response
        case .failure(var error):
            if error.code == .paused { error = Self.cause(of: error, earlyEnd, interruption, held) }
            if earlyEnd == .cancel { error.resumeData = nil }
            (ending, response) = self.ending(of: error)
            if case .failure = ending { resumeData = error.resumeData }
        }
        if let resumeData, let context = core.context { TaskContexts.shared.keep(context, for: resumeData) }
        core.withLock { state in
            state.response = response
            if case .failure(let error) = ending { state.error = error }
        }
        if !handlers.isEmpty {
            let data = resumeData?.data
            core.deliver { for handler in handlers { handler(data) } }
        }
        conclude(ending, response: response)
    }

    /// The error of a task whose last run was paused to end the task: the interruption that has ended it, or else a
    /// cancellation.
    /// - Parameter held: the resume data of an earlier run.
    private static func cause(
        of pause: TransferError, _ earlyEnd: TaskMachine.EarlyEnd?, _ interruption: TransferError?, _ held: ResumeData?
    ) -> TransferError {
        var error = pause
        error.code = .cancelled
        if earlyEnd == .abort, let interruption { error = interruption }
        error.resumeData = pause.resumeData ?? held
        return error
    }

    /// Called before the end is reported.
    func willReportEnd() { core.withLock { $0.machine.didNotify() } }

    /// Called after the end was reported. Nothing is reported after it.
    func didReportEnd() { (core.session as? ResumableURLSession)?.registry.remove(core.identifier) }
}
