import Foundation
import FoundationNetworking
import SystemCalls

/// The progress of a task, in bytes, which any thread may read while the transfer goes on.
final class TaskProgress: Progress, @unchecked Sendable {
    private struct Counts {
        var total: Int64 = -1
        var completed: Int64 = 0
    }

    // Everything of this class is behind the monitor's lock; what the superclass keeps for parents is written by the
    // task's run alone.
    private let counts = Monitor(Counts())

    init() {
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = -1
        isCancellable = true
        isPausable = true
    }

    override var totalUnitCount: Int64 {
        get { counts.withLock { $0.total } }
        set {
            counts.withLock { $0.total = newValue }
            super.totalUnitCount = newValue
        }
    }

    override var completedUnitCount: Int64 {
        get { counts.withLock { $0.completed } }
        set {
            counts.withLock { $0.completed = newValue }
            super.completedUnitCount = newValue
        }
    }

    /// Cancelling, pausing and resuming the progress is cancelling, suspending and resuming the task.
    func control(_ task: URLSessionTask) {
        cancellationHandler = { [weak task] in task?.cancel() }
        pausingHandler = { [weak task] in task?.suspend() }
        resumingHandler = { [weak task] in task?.resume() }
    }

    /// Never goes back.
    func update(completed: Int64, total: Int64?) {
        if let total, total != totalUnitCount { totalUnitCount = total }
        if completed > completedUnitCount { completedUnitCount = completed }
    }

    func complete() {
        let total = max(totalUnitCount, completedUnitCount)
        if totalUnitCount != total { totalUnitCount = total }
        completedUnitCount = total
    }
}
