import Foundation
import SystemCalls

/// Progress that any thread may read while the transfer goes on.
///
/// Foundation's own class guards nothing; here the counts that callers read are kept behind a lock. The fraction cannot be
/// overridden: it is an unguarded reading.
final class TransferProgress: Progress, @unchecked Sendable {
    private struct Counts {
        var total: Int64
        var completed: Int64 = 0
    }

    // Everything of this class is behind the monitor's lock; what the superclass keeps for parents is written by the
    // transfer's task alone.
    private let counts: Monitor<Counts>

    /// - Parameter pause: called when somebody pauses or cancels the progress.
    init(total: Int64?, pause: @escaping @Sendable () -> Void) {
        counts = Monitor(Counts(total: total ?? -1))
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = total ?? -1
        isCancellable = true
        isPausable = true
        cancellationHandler = pause
        pausingHandler = pause
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
}
