import Foundation
import SystemCalls

/// The progress of a transfer in bytes, which any thread may read while the transfer runs.
///
/// Foundation's class is not thread-safe, and it traps if a total becomes 0 while units are completed. So the counts that
/// callers read are kept here behind a lock, and the superclass gets only a share of a constant total, from which it
/// computes the fraction for callers and for parents.
package final class TransferProgress: Progress, @unchecked Sendable {
    // Everything of this class is behind the monitor's lock; what the superclass keeps for parents is written by the
    // transfer's task alone.
    private let counts: Monitor<ByteCounts>

    /// - Parameter total: bytes; `nil`: not known yet.
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
    /// - Parameter total: bytes; `nil`: not known.
    package func update(completed: Int64, total: Int64?) {
        change { $0.update(completed: completed, total: total) }
    }

    /// The transfer has succeeded.
    package func finish() { change { $0.finish() } }

    private func change(_ body: (inout ByteCounts) -> Void) {
        let units = counts.withLock { counts in
            body(&counts)
            return counts.completedUnits
        }
        if super.completedUnitCount != units { super.completedUnitCount = units }
    }

    /// Bytes; -1 while they are not known.
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

/// How far a transfer is: 0 ≤ `completed` ≤ `total` at any time, whatever it is updated with.
struct ByteCounts: Sendable, Hashable {
    /// The units into which a transfer of any size is divided for `Progress`. As a power of two it keeps the fractions small
    /// that a parent computes of many children.
    static let units: Int64 = 1 << 30

    private(set) var completed: Int64 = 0
    /// `nil` while it is not known.
    private(set) var total: Int64?
    /// Whether the transfer has succeeded; it stays so.
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

    /// The share of ``units`` that is done. It is all of them only once the transfer has succeeded: a parent counts a child
    /// that is finished as done for ever.
    var completedUnits: Int64 {
        if isFinished { return Self.units }
        guard let total, total > 0 else { return 0 }
        let share = Double(completed) / Double(total) * Double(Self.units)
        return min(Int64(share), Self.units - 1)
    }
}
