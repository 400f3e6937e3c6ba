/// Is told what a store's steps to durability took. The store keeps no numbers of its own about them.
///
/// Calls come on the threads that do the steps, at the same time, with no lock of the store held. They must not block:
/// somebody waits for the offset.
package protocol StoreObserver: Sendable {
    /// A step ended.
    /// - Parameters:
    ///   - nanoseconds: of the monotonic clock.
    ///   - isDone: `false` where the storage failed.
    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool)
}

/// What a store does before it says that something is durable.
package enum DurableStep: String, Sendable, Hashable, CaseIterable {
    /// The bytes of an upload reach stable storage (fdatasync(2)), and the first time their name, too.
    case content
    /// A published file, its name and its old name reach stable storage (fsync(2)).
    case publication
    /// The offset of an upload is in the catalog: from handing it over until its transaction, which it may share, is
    /// durable.
    case offset
}
