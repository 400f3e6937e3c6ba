import Foundation
import FoundationNetworking
import ResumableTransfer

extension TransferProgress {
    /// Cancelling, pausing and resuming the progress is cancelling, suspending and resuming the task.
    func control(_ task: URLSessionTask) {
        cancellationHandler = { [weak task] in task?.cancel() }
        pausingHandler = { [weak task] in task?.suspend() }
        resumingHandler = { [weak task] in task?.resume() }
    }

    /// Never goes back.
    func advance(to completed: Int64, total: Int64?) {
        update(completed: max(completed, completedUnitCount), total: total ?? (isIndeterminate ? nil : totalUnitCount))
    }
}
