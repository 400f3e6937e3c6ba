import Foundation

/// The common implementation of ``Upload`` and ``Download``: a transfer that a ``TransferDriver`` runs.
protocol DrivenTransfer: Transfer {
    associatedtype Operation: TransferOperation

    var core: ClientCore { get }
    var plan: TransferPlan<Operation> { get }
    var control: TransferControl<Operation.Success> { get }
    var transferProgress: TransferProgress { get }
}

extension DrivenTransfer {
    public var progress: Progress { transferProgress }

    public var checkpoint: ResumeData? { control.checkpoint }

    public var events: AsyncStream<TransferEvent> {
        let stream = control.events.stream()
        start()
        return stream
    }

    public func start() {
        guard control.begin() else { return }
        let core = core
        let plan = plan
        let control = control
        let progress = transferProgress
        let identifier = ObjectIdentifier(self)
        // Noted before the work begins, which may be over at once.
        let isAdmitted = core.enter(self)
        control.run {
            defer { core.leave(identifier) }
            let driver = TransferDriver(core: core, plan: plan, control: control, progress: progress)
            return await driver.run(isAdmitted: isAdmitted)
        }
    }

    public func pause() async -> ResumeData? {
        control.requestStop(.pause)
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return nil }
        return error.resumeData
    }

    public func cancel(deletingUpload: Bool) async {
        control.requestStop(.cancel(deleting: deletingUpload))
        start()
        _ = await control.awaitEnd()
    }
}
