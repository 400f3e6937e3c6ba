import Foundation
import SystemCalls

/// The progress of a transfer in bytes, which any thread may read while the transfer runs.
///
/// Foundation's class is not thread-safe, and it traps if a total becomes 0 while units are completed. So the counts
/// that callers read are kept here behind a lock, and the superclass gets only a share of a constant total, from which
/// it computes the fraction for callers and for parents.
package final class TransferProgress: Progress, @unchecked Sendable {
    // The monitor's lock protects the counts. Only the transfer's task writes the properties of the superclass.
    private let counts: Monitor<ByteCounts>

    /// - Parameter total: the total in bytes; `nil` while it is unknown.
    package init(total: Int64? = nil) {
        counts = Monitor(ByteCounts(total: total))
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = ByteCounts.units
        isCancellable = true
        isPausable = true
    }

    /// - Parameter pause: called when the progress is paused or canceled.
    convenience init(total: Int64?, pause: @escaping @Sendable () -> Void) {
        self.init(total: total)
        cancellationHandler = pause
        pausingHandler = pause
    }

    /// Sets both counts in one step.
    /// - Parameter total: the total in bytes; `nil` while it is unknown.
    package func update(completed: Int64, total: Int64?) {
        change { $0.update(completed: completed, total: total) }
    }

    /// Marks the transfer as successful.
    package func finish() { change { $0.finish() } }

    private func change(_ body: (inout ByteCounts) -> Void) {
        let units = counts.withLock { counts in
            body(&counts)
            return counts.completedUnits
        }
        if super.completedUnitCount != units { super.completedUnitCount = units }
    }

    /// The total in bytes; -1 while it is unknown.
    package override var totalUnitCount: Int64 {
        get { counts.withLock { $0.total ?? -1 } }
        set { change { $0.update(completed: $0.completed, total: newValue < 0 ? nil : newValue) } }
    }

    package override var completedUnitCount: Int64 {
        get { counts.withLock { $0.completed } }
        set { change { $0.update(completed: newValue, total: $0.total) } }
    }

    package override var isIndeterminate: Bool { counts.withLock { $0.total == nil && !$0.isFinished } }

    package override var isFinished: Bool { counts.withLock { $0.isFinished } }
}

/// The completed bytes and the total of a transfer. 0 ≤ `completed` ≤ `total` is always true, whatever the arguments of
/// an update are.
struct ByteCounts: Sendable, Hashable {
    /// The units into which a transfer of any size is divided for `Progress`. The number is a power of two, so that a
    /// parent with many children computes with small fractions.
    static let units: Int64 = 1 << 30

    private(set) var completed: Int64 = 0
    /// `nil` while it is not known.
    private(set) var total: Int64?
    /// Whether the transfer has succeeded. It never becomes false again.
    private(set) var isFinished = false

    init(total: Int64?) {
        update(completed: 0, total: total)
    }

    mutating func update(completed: Int64, total: Int64?) {
        guard !isFinished else { return }
        self.total = total.map { max($0, 0) }
        self.completed = min(max(completed, 0), self.total ?? .max)
    }

    mutating func finish() {
        completed = total ?? completed
        total = completed
        isFinished = true
    }

    /// The number of completed ``units``. It reaches ``units`` only when the transfer has succeeded, because a parent
    /// counts a finished child as done for ever.
    var completedUnits: Int64 {
        if isFinished { return Self.units }
        guard let total, total > 0 else { return 0 }
        let share = Double(completed) / Double(total) * Double(Self.units)
        return min(Int64(share), Self.units - 1)
    }
}
