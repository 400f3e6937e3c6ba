import HTTPTransport
import Foundation

/// An upload or a download.
///
/// Nothing is sent before one of these calls: ``start()``, ``events()``, one that waits for the result, or ``cancel()``,
/// which deletes the upload that a resumed transfer continues.
public protocol Transfer<Success>: AnyObject, Sendable {
    /// The result of the transfer.
    associatedtype Success: Sendable

    /// Identifies the transfer. A transfer that is resumed keeps its identifier, even in another process. Log entries
    /// (`transfer` in ``TransferLogEntry/metadata``), ``RequestMetrics`` and ``TransferRecord`` have the same value.
    var id: UUID { get }

    /// The request that began the transfer.
    var request: TransferRequest { get }

    /// Starts the transfer, and does not wait for it. This has no effect if it has started already.
    ///
    /// A transfer runs once: after it has ended, even by ``pause()``, it cannot be started again. Resume it with a new
    /// object: ``TransferClient/resumeUpload(_:from:request:)``, ``TransferClient/resumeDownload(_:request:)`` or the
    /// methods of a ``TransferStore``.
    func start()

    /// Starts the transfer and waits for its result. Several tasks can wait for it. If a task that waits is canceled,
    /// the transfer is paused.
    /// - Throws: ``TransferError``, or `CancellationError` if the cancellation of the waiting task ended the transfer.
    ///   In both cases ``resumeData`` is the data to resume it with.
    func value() async throws -> Success

    /// Stops the transfer so that it can be resumed later, and waits until all of its work has ended. The bytes on the
    /// server or in the partial file are kept. ``value()`` throws an error with the code `paused`. To stop a
    /// transfer that is not resumed later, call ``cancel()``.
    /// - Returns: the data with which a new transfer continues at the same position; `nil` if the transfer cannot be
    ///   resumed, or has succeeded. If the transfer has already failed, this is the resume data of its error. If the
    ///   transfer is in a ``TransferStore``, ignore the result: the store has saved it.
    func pause() async -> ResumeData?

    /// Stops the transfer permanently: deletes the upload resource on the server or the partial file, and waits until
    /// all work of the transfer has ended. ``value()`` throws an error with the code `cancelled`. If the transfer was
    /// paused or has failed before, its resume data is discarded. A transfer that has succeeded is not changed.
    ///
    /// The deletion is confirmed if ``resumeData`` is `nil` afterwards. Otherwise the error of the transfer
    /// (``TransferError/Code/cancelled``) describes why the deletion is not confirmed, for example because the server
    /// could not be reached. Then the data stays valid, and the next call of this function tries again.
    ///
    /// After a cancellation without deletion (``Upload/cancel(deletingUpload:)``,
    /// ``Download/cancel(deletingPartialFile:)``) has ended the transfer, this call has no effect.
    func cancel() async

    /// The data to resume the transfer with; `nil` if it cannot be resumed.
    ///
    /// While the transfer runs, this is its last checkpoint. Then the caller must ensure that only one transfer at a time
    /// resumes it. After the transfer has failed, this is the data of its error.
    var resumeData: ResumeData? { get }

    /// Starts the transfer, and returns a new stream of its events. The stream begins with the last event of each kind
    /// that describes the current state (`started` or `waiting`, `checkpoint`, `progress` or `received`), and ends with
    /// `completed` or `failed`. If a stream is not read, the transfer continues.
    ///
    /// At most 1024 events wait for the reader. A `progress`, `received` or `checkpoint` event replaces the previous
    /// one if that one still waits. If 1024 events wait, the next event replaces the oldest one.
    func events() -> AsyncStream<TransferEvent>

    /// The transferred bytes out of the total, the throughput and the remaining time. Canceling or pausing this object
    /// pauses the transfer.
    var progress: TransferProgress { get }

    /// The priority among the transfers of the client that wait for their turn
    /// (``TransferClient/Configuration/maxTransfers``); initially `medium`. It can be changed while the transfer
    /// waits. Once it runs, the priority has no effect.
    var priority: TaskPriority { get set }

    /// The times of the last fifty requests of this transfer that have ended, in order.
    var metrics: [RequestMetrics] { get }
}

/// The common implementation of ``Upload`` and ``Download``: a transfer that a ``TransferDriver`` runs.
protocol DrivenTransfer<Success>: Transfer where Operation.Success == Success {
    associatedtype Operation: TransferOperation

    var parts: TransferParts<Operation> { get }
}

/// The parts of a transfer that the object of the caller and the driver share.
final class TransferParts<Operation: TransferOperation>: Sendable {
    let client: TransferClient
    let plan: TransferPlan<Operation>
    /// Saves the checkpoints of this transfer. If it is `nil`, ``TransferClient/Configuration/onCheckpoint`` saves
    /// them. A transfer with a store has no tickets: the store ensures that only one transfer at a time uses its data.
    let store: (any CheckpointStore)?
    /// Participates in the exchanges of this transfer.
    let handler: (any ExchangeHandler)?
    let control: TransferControl<Operation.Success>
    let progress: TransferProgress

    init(
        _ client: TransferClient, _ plan: TransferPlan<Operation>, store: (any CheckpointStore)? = nil,
        handler: (any ExchangeHandler)? = nil
    ) {
        self.client = client
        self.plan = plan
        self.store = store
        self.handler = handler
        let resumeData = plan.checkpoint
        let control = TransferControl<Operation.Success>(resumeData: resumeData)
        self.control = control
        let total = Operation.total(of: plan)
        progress = TransferProgress(total: total)
        if let resumeData { progress.update(completed: resumeData.position, total: total) }
        let pause: @Sendable () -> Void = { control.requestStop(.pause) }
        progress.cancellationHandler = pause
        progress.pausingHandler = pause
    }
}

extension DrivenTransfer {
    var client: TransferClient { parts.client }
    var plan: TransferPlan<Operation> { parts.plan }
    var control: TransferControl<Operation.Success> { parts.control }

    /// The transferred bytes out of the total. Canceling or pausing this object pauses the transfer.
    public var progress: TransferProgress { parts.progress }

    /// The priority among the transfers of the client that wait for their turn.
    public var priority: TaskPriority {
        get { control.priority }
        set {
            control.priority = newValue
            client.queue.setPriority(newValue, of: ObjectIdentifier(self))
        }
    }

    /// The times of the last fifty requests of this transfer that have ended, in order.
    public var metrics: [RequestMetrics] { control.metrics }

    /// Identifies the transfer through all its resumptions.
    public var id: UUID { plan.id }

    /// The request that began the transfer.
    public var request: TransferRequest { plan.request }

    /// The data to resume the transfer with; `nil` if it cannot be resumed.
    public var resumeData: ResumeData? { control.resumeData }

    /// Starts the transfer, and returns a new stream of its events.
    public func events() -> AsyncStream<TransferEvent> {
        let stream = control.events.stream()
        start()
        return stream
    }

    /// Starts the transfer. This has no effect if it has started already.
    public func start() {
        guard let isAdmitted = begin() else { return }
        let (parts, identifier) = (parts, ObjectIdentifier(self))
        Task { await perform(parts, identifier, isAdmitted: isAdmitted) }
    }

    /// Runs the transfer in the current task, unless it has started already, and waits for its result. This needs less
    /// time than a task and a stream of events for each of many transfers. The current task must not be canceled.
    /// - Parameter observer: called with each event, in order. It must not wait, or use the events of the transfer.
    func runHere(
        _ observer: @escaping @Sendable (TransferEvent) -> Void
    ) async throws(TransferError) -> Success {
        if let isAdmitted = begin(observer) {
            await perform(parts, ObjectIdentifier(self), isAdmitted: isAdmitted)
        }
        return try await control.awaitEnd().get()
    }

    /// Marks the transfer as started, and registers it before its work starts, because the work may end immediately.
    /// - Returns: whether the client accepts the transfer; `nil` if it has started already.
    private func begin(_ observer: (@Sendable (TransferEvent) -> Void)? = nil) -> Bool? {
        guard control.begin() else { return nil }
        let client = client
        // The closure has a strong reference to the transfer until its last event.
        control.events.forward { event in
            client.clientEvents.send(event, of: self)
            observer?(event)
        }
        return client.register(self)
    }

    /// Stops the transfer so that it can be resumed later, and waits until all of its work has ended.
    /// - Returns: the data to resume the transfer with; `nil` if it cannot be resumed, or has succeeded.
    public func pause() async -> ResumeData? {
        requestPause()
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return nil }
        return error.resumeData
    }

    func requestPause() { control.requestStop(.pause) }

    /// Stops the transfer permanently: deletes the upload resource on the server or the partial file, and waits until
    /// all work of the transfer has ended. ``resumeData`` is `nil` afterwards, unless the deletion is not confirmed.
    public func cancel() async { await cancel(deleting: true) }

    func cancel(deleting shouldDelete: Bool) async {
        let isRunning = control.requestStop(.cancel(deleting: shouldDelete))
        start()
        guard case .failure(let error) = await control.awaitEnd(), shouldDelete, let data = error.resumeData else {
            return
        }
        // If this call has stopped the work, the work has tried to delete the upload already. Otherwise the transfer had
        // ended before, or a pause or a failure was ending it.
        if isRunning, error.code == .cancelled { return }
        do throws(TransferError) {
            if let store = parts.store {
                try await store.discard(data, request: request)
            } else {
                try await client.discard(data, request: request)
            }
            control.replaceFailure(with: TransferError(.cancelled, "The \(Operation.noun) was canceled."))
        } catch {
            var error = error.asUnconfirmedDeletion(noun: Operation.noun)
            error.resumeData = data
            control.replaceFailure(with: error)
        }
    }

    /// Starts the transfer and waits for its result. If the waiting task is canceled, the transfer is paused.
    /// - Throws: ``TransferError``, or `CancellationError` if the cancellation of the waiting task has ended the transfer.
    func cancellableOutcome() async throws -> Success {
        start()
        do throws(TransferError) {
            return try await control.value()
        } catch {
            if error.code == .paused, Task.isCancelled { throw CancellationError() }
            throw error
        }
    }
}

/// Performs the work of a transfer that has started. This is no method, because the work must not keep the transfer alive.
private func perform<Operation: TransferOperation>(
    _ parts: TransferParts<Operation>, _ identifier: ObjectIdentifier, isAdmitted: Bool
) async {
    let client = parts.client
    await parts.control.perform {
        defer { client.unregister(identifier) }
        await client.waitForTurn(identifier, parts.control, parts.progress) {
            parts.control.events.send(.waiting)
            TransferLog(client.configuration, parts.plan).write(.info, "The \(Operation.noun) waits for its turn.")
        }
        return await TransferDriver(parts).run(isAdmitted: isAdmitted)
    } rejection: {
        Operation.rejection(of: $0)
    }
}
