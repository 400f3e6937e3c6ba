import Foundation
import FoundationNetworking
import ResumableTransfer
import SystemCalls

/// A task that is carried by transfers of ResumableTransfer.
protocol TransferTask: URLSessionTask {
    var core: TaskCore { get }
    /// The session's client; `nil` if the session has none.
    var client: TransferClient? { get }
    /// What is needed beside the resume data to resume the transfer.
    var context: TaskContext? { get }

    /// Makes the transfer of a run.
    func open(_ data: ResumeData?) throws(TransferError) -> TaskRun
    /// Reports an event to the delegate.
    func handle(_ event: TransferEvent)
    /// Reports the end, with ``completed()`` before it and ``finished()`` after it.
    func conclude(_ ending: Result<TaskCompletion, URLError>, response: HTTPURLResponse?)
    /// How a transfer that failed ends the task.
    func ending(of error: TransferError) -> (Result<TaskCompletion, URLError>, HTTPURLResponse?)
}

/// One run of a task.
struct TaskRun: Sendable {
    let transfer: any Transfer
    let end: @Sendable () async -> Result<TaskCompletion, TransferError>
}

/// What a transfer ended with.
struct TaskCompletion: Sendable {
    var response: HTTPURLResponse?
    /// The content of an upload's response.
    var content = Data()
    /// The file of a download.
    var file: FilePath?
}

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
