import Foundation
import FoundationNetworking
import ResumableTransfer
import SystemCalls

/// A task that is carried by transfers of ResumableTransfer.
protocol TransferTask: URLSessionTask {
    var core: TaskCore { get }
    /// The session's client; `nil` where the session has none.
    var client: TransferClient? { get }
    /// With what the transfer can be told on beside its resume data.
    var context: TaskContext? { get }

    /// Makes the transfer of a run.
    func open(_ data: ResumeData?) throws(TransferError) -> TaskRun
    /// Tells the delegate what has happened.
    func take(_ event: TransferEvent)
    /// Tells the end, ``completed()`` before it and ``finished()`` after it.
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
    /// Of an upload's response.
    var content = Data()
    /// The file of a download.
    var file: FilePath?
}
