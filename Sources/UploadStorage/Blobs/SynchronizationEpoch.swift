import SystemCalls

/// The number of times that a directory could not be made durable since the store was opened.
///
/// Linux reports a failed write once for each open description. What several threads change in one directory is written
/// together, so that the one whose fsync(2) fails is not the only one whose change is in doubt: a success counts only if no
/// directory failed since the change was made.
package struct SynchronizationEpoch: Sendable, Hashable {
    var failures = 0
}

/// The directories of a blob area, as far as their durability is concerned.
final class DirectorySynchronization: Sendable {
    private enum Entry {
        /// A later synchronization makes it durable.
        case unconfirmed
        /// A synchronization failed before it was durable: no later one proves anything, until the directory is created again.
        case lost
    }

    private struct State {
        var failures = 0
        /// Directories that this life of the store made, until their entries are durable.
        var made: [PublishedName.Directory: Entry] = [:]
    }

    private let state = Monitor(State())

    var epoch: SynchronizationEpoch { state.withLock { SynchronizationEpoch(failures: $0.failures) } }

    /// Returns once the changes in a directory are on stable storage.
    /// - Parameters:
    ///   - epoch: from before it was changed.
    ///   - child: a directory whose entry is one of the changes.
    ///   - synchronize: makes the entries of the directory durable.
    /// - Throws: the error of `synchronize`; `EIO` if one of another thread failed since.
    func synchronize(
        since epoch: SynchronizationEpoch, confirming child: PublishedName.Directory? = nil,
        _ synchronize: () throws(Errno) -> Void
    ) throws(Errno) {
        do throws(Errno) { try synchronize() } catch {
            // In one step, so that a thread that reads the epoch after this failure also finds what was lost.
            state.withLock { state in
                state.failures += 1
                state.made = state.made.mapValues { _ in .lost }
            }
            throw error
        }
        try state.withLock { (state) throws(Errno) in
            if state.failures != epoch.failures { throw .inputOutput }
            if let child { state.made[child] = nil }
        }
    }

    /// Returns once the changes in an open directory are on stable storage.
    func synchronize(_ directory: FileDescriptor, since epoch: SynchronizationEpoch) throws(Errno) {
        try synchronize(since: epoch) { () throws(Errno) in try directory.synchronize() }
    }

    /// Makes a directory unless it exists. One whose entry was lost is removed first.
    /// - Parameters:
    ///   - make: returns false if the directory exists.
    ///   - remove: removes an empty directory.
    /// - Throws: `EIO` if the entry was lost and the directory cannot be removed because it is not empty.
    func make(
        _ directory: PublishedName.Directory, _ make: () throws(Errno) -> Bool,
        remove: (PublishedName.Directory) throws(Errno) -> Void
    ) throws(Errno) {
        try state.withLock { (state) throws(Errno) in
            if state.made[directory] == .lost { try Self.removeLost(directory, &state, remove) }
            if try make() { state.made[directory] = .unconfirmed }
        }
    }

    /// Removes a directory if its entry was lost, with those below it. If that fails, the next ``make(_:_:remove:)`` tries again.
    func removeLost(_ directory: PublishedName.Directory, _ remove: (PublishedName.Directory) throws(Errno) -> Void) {
        state.withLock { state in _ = try? Self.removeLost(directory, &state, remove) }
    }

    private static func removeLost(
        _ directory: PublishedName.Directory, _ state: inout State,
        _ remove: (PublishedName.Directory) throws(Errno) -> Void
    ) throws(Errno) {
        let lost = state.made.filter { $0.value == .lost && $0.key.segments.starts(with: directory.segments) }
        for next in lost.keys.sorted(by: { $0.segments.count > $1.segments.count }) {
            do throws(Errno) { try remove(next) } catch { if error != .noSuchFile { throw .inputOutput } }
            state.made[next] = nil
        }
    }
}
