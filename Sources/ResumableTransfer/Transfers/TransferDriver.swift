import HTTPTransport
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Runs an upload or a download: claims it, sends the requests of its operation, waits between attempts, saves
/// checkpoints and reports events.
///
/// One task owns the driver from beginning to end.
final class TransferDriver<Operation: TransferOperation> {
    private let parts: TransferParts<Operation>
    /// The plan of ``parts``, here because a computed property would copy it for each use.
    let plan: TransferPlan<Operation>
    lazy var operation = Operation(driver: self)

    /// The right to run the transfer, from its first checkpoint or its resumption until its end.
    private var claim: TicketClaim?
    /// The last checkpoint that was saved and reported as an event.
    private var lastSaved: Operation.Checkpoint?
    /// The time at which that checkpoint was saved, in monotonic nanoseconds.
    private var lastSavedAt: Int64 = 0
    /// The last checkpoint that callers can read.
    private var kept: Operation.Checkpoint?
    /// The position of an upload when its checkpoint was saved last, and the time of that in monotonic nanoseconds.
    private var saved: (position: Int64, time: Int64)
    /// The minimum time, in nanoseconds, between two saves of an upload in which only the position differs.
    private var saveInterval: Int64 { 1_000_000_000 }

    /// Whether the next content follows an interruption.
    var isResuming: Bool
    /// The last final response, which errors contain.
    var response: TransferResponse?
    /// The error of the last interruption, with its message.
    var lastFailure: TransferError?
    /// The number of requests that were sent.
    var requests = 0
    let log: TransferLog
    /// The generation of the credentials of the last request.
    var credentialGeneration = 0

    init(_ parts: TransferParts<Operation>) {
        self.parts = parts
        plan = parts.plan
        log = TransferLog(parts.client.configuration, parts.plan)
        isResuming = parts.plan.resumed != nil
        saved = (parts.plan.checkpoint?.position ?? 0, SystemClock.monotonicNanoseconds())
    }

    var client: TransferClient { parts.client }
    private var store: (any CheckpointStore)? { parts.store }
    var handler: (any ExchangeHandler)? { parts.handler }
    var control: TransferControl<Operation.Success> { parts.control }
    var progress: TransferProgress { parts.progress }

    /// - Parameter isAdmitted: whether the client accepts the transfer; false if the client was shut down.
    func run(isAdmitted: Bool) async -> Result<Operation.Success, TransferError> {
        let result = await perform(isAdmitted: isAdmitted)
        var failure: TransferError?
        switch result {
        case .success(let success): failure = Operation.rejection(of: success)
        case .failure(let error): failure = error
        }
        if case .failure(let error) = result { await store?.ended(error) } else { await store?.ended(nil) }
        log.end(Operation.noun, failure, progress)
        return result
    }

    private func perform(isAdmitted: Bool) async -> Result<Operation.Success, TransferError> {
        // Closes the files and releases the claim first: a later transfer may use them as soon as the result is
        // returned.
        defer {
            operation.close()
            claim = nil
        }
        do throws(TransferError) {
            if plan.resumed != nil, store == nil || plan.hasTicket {
                claim = try await client.claim(plan.id, generation: plan.generation, hasTicket: plan.hasTicket)
            }
        } catch {
            return .failure(claimError(error))
        }
        do throws(TransferError) {
            guard isAdmitted else { throw TransferError(.shutDown, "The client was shut down.") }
            if control.stop == nil { reportStart() }
            guard plan.target != nil else {
                throw TransferError(
                    .invalidRequest, "The URL of the \(Operation.noun) must be absolute, with the scheme http or https."
                )
            }
            guard plan.request.hasValidDigests else {
                throw TransferError(.invalidRequest, "An expected digest has the wrong number of bytes.")
            }
            let result =
                if let result = try await operation.prepare() { result } else { try await transfer() }
            claim?.remove()
            return .success(result)
        } catch {
            return .failure(await conclude(error))
        }
    }

    private func transfer() async throws(TransferError) -> Operation.Success {
        while true {
            if let stop = control.stop { try operation.handle(stop) }
            switch operation.machine.next(now: SystemClock.realtimeSeconds()) {
            case .send(let request): try await perform(request)
            case .wait(let duration, let reason): try await wait(duration, because: reason)
            case .refreshCredentials: try await refreshCredentials()
            case .finished(let outcome): return try await operation.finish(outcome)
            case .failed(let failure): throw operation.error(of: failure) ?? error(of: failure)
            }
        }
    }

    // MARK: Checkpoints

    /// Stores the current checkpoint for callers. Saves it and sends the event `checkpoint` if it differs enough from
    /// the last saved one. If only the position of an upload has moved, it is saved at most once a second, and no event
    /// is sent.
    /// - Parameter isDue: whether the checkpoint is saved in any case.
    func keepCheckpoint(isDue: Bool = false) async {
        guard let checkpoint = operation.checkpoint else {
            lastSaved = nil
            kept = nil
            return control.keep(nil)
        }
        let now = SystemClock.monotonicNanoseconds()
        let shouldSave = isDue || lastSaved.map { checkpoint.supersedes($0, age: now - lastSavedAt) } ?? true
        let hasMoved = isPositionDue(now)
        guard shouldSave || hasMoved || checkpoint != kept else { return }
        kept = checkpoint
        let data = plan.data(of: checkpoint)
        control.keep(data)
        if shouldSave {
            lastSaved = checkpoint
            lastSavedAt = now
            await claimCheckpoint()
            guard let data else { return }
            await save(data)
            control.events.send(.checkpoint(data))
        } else if hasMoved, let data, store != nil {
            await save(data)
        }
    }

    /// Saves a checkpoint in which only the position of the upload has changed, as ``keepCheckpoint(isDue:)`` does.
    func savePosition() async {
        if store != nil, isPositionDue(SystemClock.monotonicNanoseconds()) { await keepCheckpoint() }
    }

    /// Whether the position of an upload has to be saved.
    private func isPositionDue(_ now: Int64) -> Bool {
        guard now - saved.time >= saveInterval, let position = operation.sentPosition else { return false }
        return position > saved.position
    }

    /// Reports that content is transferred from this position on, in bytes, after an interruption or in a new run.
    func reportResumption(at position: Int64) {
        control.events.send(.resumed(at: position))
        log.write(.info, "The \(Operation.noun) resumes.", ["position": "\(position)"])
    }

    private func reportStart() {
        let total = Operation.total(of: plan)
        control.events.send(.started(total: total))
        log.write(.info, "The \(Operation.noun) starts.", ["total": total.map { "\($0)" }])
    }

    private func save(_ data: ResumeData) async {
        log.write(.debug, "A checkpoint is saved.", ["position": "\(data.position)"])
        let position = operation.sentPosition
        saved = (position ?? 0, SystemClock.monotonicNanoseconds())
        if let store {
            await store.save(data, sent: position)
        } else {
            await client.configuration.onCheckpoint?(data)
        }
    }

    /// Whether `checkpoint` is the last one that was saved and reported as an event.
    func isLastSaved(_ checkpoint: Operation.Checkpoint?) -> Bool { lastSaved == checkpoint }

    /// Prevents other transfers from resuming a checkpoint of this transfer while it runs, if checkpoints are saved.
    private func claimCheckpoint() async {
        guard claim == nil, store == nil, client.configuration.onCheckpoint != nil else { return }
        claim = try? await client.claim(plan.id, generation: plan.generation, hasTicket: false)
    }

    // MARK: Errors

    /// The error of a transfer that could not claim its resume data. The data stays valid, except with the code
    /// `resumeDataUsed`.
    private func claimError(_ error: TransferError) -> TransferError {
        control.keep(nil)
        var error = error
        if error.code != .resumeDataUsed { error.resumeData = plan.data }
        return error
    }

    /// Returns the error, with resume data if the transfer can be resumed.
    private func conclude(_ error: TransferError) async -> TransferError {
        var error = error
        switch await operation.conclude(error) {
        case .resumable(let checkpoint):
            let ticket = store != nil ? nil : client.issueTicket(for: plan.id, generation: plan.generation + 1)
            error.resumeData = try? plan.data(
                of: checkpoint, generation: ticket?.generation ?? plan.generation, hasTicket: ticket != nil)
            if store != nil, let data = error.resumeData { await save(data) }
        case .over:
            control.keep(nil)
            claim?.remove()
        case .nothing: control.keep(nil)
        }
        return error
    }
}

/// The steps of a transfer in which no request is sent.
extension TransferDriver {
    /// Waits for the next attempt, unless the caller decides that there is none.
    func wait(_ proposed: Duration, because reason: ClientInterruption) async throws(TransferError) {
        isResuming = true
        let error = error(of: reason)
        if operation.isDeleting {
            control.events.send(.interrupted(error, retryIn: proposed))
            // A stop was requested before, so nothing else ends this wait.
            try? await Task.sleep(for: proposed)
            return
        }
        progress.setWaiting(true)
        defer { progress.setWaiting(false) }
        let delay = try await delay(proposed, after: error)
        if control.stop != nil { return }
        control.events.send(.interrupted(error, retryIn: delay))
        let attempt = operation.machine.attempts
        log.write(
            .warning, "The \(Operation.noun) was interrupted.",
            error.metadata.merging(["attempt": "\(attempt)", "delay": "\(Double(delay.nanoseconds) / 1e9)"]) { $1 })
        await control.sleep(for: delay)
    }

    /// The delay before the next attempt.
    /// - Throws: `error`, if the caller decides that there is no other attempt.
    private func delay(_ proposed: Duration, after error: TransferError) async throws(TransferError) -> Duration {
        guard let shouldRetry = client.configuration.shouldRetry else { return proposed }
        let attempt = operation.machine.attempts
        let decision = await control.result { await shouldRetry(error, attempt, proposed) }
        switch decision {
        case .success(.retry(let delay)): return max(delay, .zero)
        // If a stop was requested, the transfer ends as that request requires.
        case .success(.stop) where control.stop == nil: throw error
        case .success(.stop), .failure: return .zero
        }
    }
}
