import Foundation
import FoundationNetworking
import ResumableTransfer
import SystemCalls

/// A task that performs a transfer of ResumableTransfer.
protocol TransferTask: URLSessionTask {
    var core: TaskCore { get }

    /// Creates the transfer of the next run: a task begins a new run whenever it is resumed. `data` is the resume data
    /// of the previous run; `nil` if the transfer starts from the beginning.
    func open(_ data: ResumeData?) throws(TransferError) -> TaskRun
    /// Reports an event to the delegate.
    func handle(_ event: TransferEvent)
    /// Calls ``willReportEnd()``, reports the end to the delegate or the completion handler, and calls ``didReportEnd()``.
    func conclude(_ ending: Result<TaskCompletion, URLError>, response: HTTPURLResponse?)
    /// Returns the result of a task whose transfer has failed with `error`.
    func ending(of error: TransferError) -> (Result<TaskCompletion, URLError>, HTTPURLResponse?)
}

/// One run of a task.
struct TaskRun: Sendable {
    let transfer: any Transfer
    /// Starts the transfer, and waits for its result.
    let outcome: @Sendable () async -> Result<TaskCompletion, TransferError>
}

/// The result of a successful transfer.
struct TaskCompletion: Sendable {
    var response: HTTPURLResponse?
    /// The content of an upload's response.
    var content = Data()
    /// The file of a download.
    var file: FilePath?
}

extension TransferProgress {
    /// Connects the progress with a task: canceling, pausing and resuming the progress cancels, suspends and resumes
    /// the task.
    func control(_ task: URLSessionTask) {
        cancellationHandler = { [weak task] in task?.cancel() }
        pausingHandler = { [weak task] in task?.suspend() }
        resumingHandler = { [weak task] in task?.resume() }
    }

    /// Updates the progress. The completed count never decreases.
    func advance(to completed: Int64, total: Int64?) {
        update(completed: max(completed, completedUnitCount), total: total ?? (isIndeterminate ? nil : totalUnitCount))
    }
}
