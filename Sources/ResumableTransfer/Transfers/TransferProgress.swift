import Foundation
import Synchronization
import SystemCalls

/// The progress of a transfer in bytes.
///
/// While the transfer runs, any thread may read the properties that this class declares or overrides, pause and cancel.
/// On Linux other properties of Foundation's `Progress`, among them `fractionCompleted`, and a parent have no locks.
/// Transfers with the same parent update it one after another. Add them to it before they start, and read fractions
/// when they have ended; while they run, compute fractions from ``completedUnitCount`` and ``totalUnitCount``.
public final class TransferProgress: Progress, @unchecked Sendable {
    private struct State {
        var counts: ByteCounts
        var meter = RateMeter()
        var transferred: Int64 = 0
        var isWaiting = false
    }

    // Foundation's class has no locks, and it traps if a total becomes 0 while units are completed. So the counts that
    // callers read are kept here behind a lock, and the superclass gets only a share of a constant total, from which it
    // computes the fraction for callers and for parents. Each write of the superclass also writes its parents, which
    // other transfers may have, too: one lock for all transfers of the process protects these writes.
    private let state: Mutex<State>
    private static let tree = Mutex(())

    /// - Parameter total: the total in bytes; `nil` while it is unknown.
    package init(total: Int64? = nil) {
        state = Mutex(State(counts: ByteCounts(total: total)))
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = ByteCounts.units
        isCancellable = true
        isPausable = true
    }

    /// Sets the completed bytes and the total in one step.
    /// - Parameter total: the total in bytes; `nil` while it is unknown.
    package func update(completed: Int64, total: Int64?) {
        change { $0.update(completed: completed, total: total) }
    }

    /// Marks the transfer as successful.
    package func finish() { change { $0.finish() } }

    private func change(_ body: (inout ByteCounts) -> Void) {
        Self.tree.withLock { _ in
            let units = state.withLock { state in
                body(&state.counts)
                return state.counts.completedUnits
            }
            if super.completedUnitCount != units { super.completedUnitCount = units }
        }
    }

    // MARK: Throughput

    /// The number of bytes per second that this run of the transfer has moved over the last eight seconds; `nil` until
    /// that can be measured, and 0 while the transfer waits. Bytes of earlier runs do not count.
    public var throughput: Int? { throughput(at: SystemClock.monotonicNanoseconds()) }

    /// The time until the transfer is complete, if ``throughput`` stays the same; `nil` if that or the total
    /// is unknown, and while nothing is transferred.
    public var estimatedTimeRemaining: Duration? { estimatedTimeRemaining(at: SystemClock.monotonicNanoseconds()) }

    /// Whether the transfer waits for its turn (``TransferClient/Configuration/maxTransfers``) or for its next
    /// attempt after an interruption.
    public var isWaiting: Bool { state.withLock { $0.isWaiting } }

    /// The number of bytes of content that this run of the transfer has moved, even if some of them had to be sent
    /// again.
    package var transferred: Int64 { state.withLock { $0.transferred } }

    func throughput(at now: Int64) -> Int? {
        state.withLock { state in state.isWaiting ? 0 : state.meter.rate(at: now).map { Int(clamping: Int64($0)) } }
    }

    func estimatedTimeRemaining(at now: Int64) -> Duration? {
        state.withLock { state in
            if state.counts.isFinished { return .zero }
            guard !state.isWaiting, let total = state.counts.total, let rate = state.meter.rate(at: now), rate >= 1
            else { return nil }
            return .seconds(Double(total - state.counts.completed) / rate)
        }
    }

    /// Notes how many bytes this run has moved.
    /// - Parameters:
    ///   - transferred: the bytes of content of all requests of this run so far.
    ///   - now: monotonic nanoseconds.
    func note(transferred: Int64, at now: Int64 = SystemClock.monotonicNanoseconds()) {
        state.withLock { state in
            state.transferred = max(transferred, state.transferred)
            state.meter.note(state.transferred, at: now)
        }
    }

    /// Notes that the transfer begins to wait, or no longer waits. The measurement starts again after a wait.
    func setWaiting(_ isWaiting: Bool) {
        state.withLock { state in
            state.isWaiting = isWaiting
            state.meter.reset()
        }
    }

    // MARK: Counts

    /// The total in bytes; -1 while it is unknown.
    public override var totalUnitCount: Int64 {
        get { state.withLock { $0.counts.total ?? -1 } }
        set { change { $0.update(completed: $0.completed, total: newValue < 0 ? nil : newValue) } }
    }

    /// The completed bytes, including those of earlier runs: a resumed transfer begins with the position in its resume
    /// data. For an upload, these are the bytes that were sent, without the last 4 MiB if the server has not
    /// acknowledged them. Bytes that were not acknowledged may be sent again.
    public override var completedUnitCount: Int64 {
        get { state.withLock { $0.counts.completed } }
        set { change { $0.update(completed: newValue, total: $0.total) } }
    }

    /// Whether the total is unknown.
    public override var isIndeterminate: Bool { state.withLock { $0.counts.total == nil && !$0.counts.isFinished } }

    /// Whether the transfer has succeeded.
    public override var isFinished: Bool { state.withLock { $0.counts.isFinished } }
}

/// The completed bytes and the total of a transfer. 0 ≤ `completed` ≤ `total` is always true, whatever the arguments of
/// an update are.
struct ByteCounts: Sendable, Hashable {
    /// The units into which a transfer of any size is divided for `Progress`. The number is a power of two, so that a
    /// parent with many children computes with small fractions.
    static let units: Int64 = 1 << 30

    private(set) var completed: Int64 = 0
    /// The size of the representation in bytes; `nil` while it is not known.
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
    /// counts a finished child as done permanently.
    var completedUnits: Int64 {
        if isFinished { return Self.units }
        guard let total, total > 0 else { return 0 }
        let share = Double(completed) / Double(total) * Double(Self.units)
        return min(Int64(share), Self.units - 1)
    }
}

/// Measures the rate at which a count of bytes grows, over the last seconds.
package struct RateMeter: Sendable {
    private static let window: Int64 = 8_000_000_000
    /// The minimum time for a useful rate.
    private static let minTime: Int64 = 300_000_000
    private static let sampleInterval: Int64 = 50_000_000

    private struct Sample {
        /// Monotonic nanoseconds.
        let time: Int64
        let count: Int64
    }

    /// Oldest first. The first sample is the last one before the window, or the beginning.
    private var samples: [Sample] = []

    package init() {}

    /// - Parameters:
    ///   - count: the number of bytes so far, which never decreases.
    ///   - time: monotonic nanoseconds.
    package mutating func note(_ count: Int64, at time: Int64) {
        if let last = samples.last, time - last.time < Self.sampleInterval, samples.count > 1 { samples.removeLast() }
        samples.append(Sample(time: time, count: count))
        let start = time - Self.window
        if samples.count > 2, samples[1].time <= start {
            samples.removeFirst(max((samples.firstIndex { $0.time > start } ?? samples.count) - 1, 0))
        }
    }

    /// The rate in bytes per second; `nil` while the time since the first note is too short.
    /// - Parameter time: monotonic nanoseconds.
    package func rate(at time: Int64) -> Double? {
        guard let first = samples.first, let last = samples.last, time - first.time >= Self.minTime
        else { return nil }
        let start = time - Self.window
        // A sample before the window counts as one at its beginning: the bytes after it were noted later.
        let base = samples.last { $0.time <= start } ?? first
        return Double(last.count - base.count) * 1e9 / Double(time - max(base.time, start))
    }

    package mutating func reset() { samples = [] }
}
