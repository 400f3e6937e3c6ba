/// The failures that an acknowledged offset survives.
public enum Durability: String, Sendable, Hashable, CaseIterable {
    /// The end of the process and the loss of power: data is synchronized before the offset is recorded.
    case acknowledged
    /// The end of the process alone.
    case relaxed
}

/// A step of a store that makes data durable.
package enum DurableStep: String, Sendable, Hashable, CaseIterable {
    /// The bytes of one or several uploads reach stable storage (fdatasync(2), fsync(2) or syncfs(2)). The first step
    /// of a resumable upload also makes the name of its file in `uploads/` durable.
    case content
    /// The names of one or several published files reach stable storage, and their attributes if those are not durable
    /// yet (fsync(2) or syncfs(2)).
    case publication
    /// The offset of an upload is recorded in the catalog. The step ends when its transaction, which can contain other
    /// changes, is durable.
    case offset
}

/// Receives the durations of the steps with which a store makes data durable. The store itself does not keep them.
///
/// The methods are called on the threads that perform the steps, possibly on several threads simultaneously, while no
/// lock of the store is held. They must not block, because a request waits for the step.
package protocol StoreObserver: Sendable {
    /// Called when a step has ended.
    /// - Parameters:
    ///   - nanoseconds: the duration, measured with the monotonic clock.
    ///   - isDone: `false` if the storage failed.
    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool)
}
