import SystemCalls

/// The number of times that a directory or the file system could not be made durable since the store was opened.
///
/// Linux reports a failed write only once for each open file description, and it writes the changes of several threads
/// in one directory together. If fsync(2) fails for one thread, the changes of other threads may be lost, too. So a
/// successful fsync(2) proves that a change is durable only if no synchronization of a directory has failed since the
/// change was made.
package struct SynchronizationEpoch: Sendable, Hashable {
    var failures: Int

    package init(failures: Int = 0) { self.failures = failures }
}

/// Synchronizes the directories of a blob area, and records which of them may be lost.
final class DirectorySynchronization: Sendable {
    private enum Entry {
        /// The entry is not durable yet. A later synchronization makes it durable.
        case unconfirmed
        /// A synchronization failed before the entry was durable. A later success does not prove that the entry is
        /// durable, until the directory is created again.
        case lost
    }

    private struct State {
        var failures = 0
        /// The directories that were made since the store was opened, until their entries are durable.
        var made: [PublishedName.Directory: Entry] = [:]
    }

    /// The synchronizations of one directory. They run one after the other.
    private struct Turns {
        /// The number of threads that use this value.
        var users = 0
        /// The number of synchronizations that have begun.
        var begun = 0
        var isRunning = false

        var ended: Int { isRunning ? begun - 1 : begun }
    }

    private let state = Monitor(State())
    /// The key is the inode of the directory: all directories of an area are in one file system.
    private let turns = Monitor<[UInt64: Turns]>([:])

    var epoch: SynchronizationEpoch { state.withLock { SynchronizationEpoch(failures: $0.failures) } }

    /// Returns once the changes in a directory are on stable storage.
    /// - Parameters:
    ///   - epoch: the epoch from before the directory was changed.
    ///   - child: a directory whose entry is one of the changes.
    ///   - synchronize: makes the entries of the directory durable.
    /// - Throws: the error of `synchronize`; `EIO` if a synchronization by another thread has failed since `epoch`.
    func synchronize(
        since epoch: SynchronizationEpoch, confirming child: PublishedName.Directory? = nil,
        _ synchronize: () throws(Errno) -> Void
    ) throws(Errno) {
        do throws(Errno) { try synchronize() } catch {
            // The count and the entries are changed in one step, so that a thread that reads the epoch after this
            // failure also finds the lost directories.
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

    /// Returns once the changes in an open directory are on stable storage. Threads that call this at the same time
    /// share synchronizations: each needs one that begins after its call.
    func synchronize(_ directory: FileDescriptor, since epoch: SynchronizationEpoch) throws(Errno) {
        let inode = try directory.status().inode
        try synchronizeTogether(inode, since: epoch) { () throws(Errno) in try directory.synchronize() }
    }

    /// - Parameters:
    ///   - inode: the directory.
    ///   - synchronize: makes its entries durable.
    func synchronizeTogether(
        _ inode: UInt64, since epoch: SynchronizationEpoch, _ synchronize: () throws(Errno) -> Void
    ) throws(Errno) {
        let goal = turns.withLock { turns in
            turns[inode, default: Turns()].users += 1
            return turns[inode, default: Turns()].begun + 1
        }
        defer { leaveTurns(of: inode) }
        let isShared = turns.waitForever { turns -> Bool? in
            guard var directory = turns[inode] else { return nil }
            if directory.ended >= goal { return true }
            if directory.isRunning { return nil }
            directory.begun += 1
            directory.isRunning = true
            turns[inode] = directory
            return false
        }
        if isShared {
            // The other thread has counted its failure before its turn ended.
            try self.synchronize(since: epoch) { () throws(Errno) in }
        } else {
            defer {
                turns.withLock { $0[inode]?.isRunning = false }
                turns.notifyAll()
            }
            try self.synchronize(since: epoch, synchronize)
        }
    }

    /// Whether no thread synchronizes a directory, and nothing is kept for any directory.
    var isIdle: Bool { turns.withLock { $0.isEmpty } }

    /// The number of threads that synchronize a directory or wait for that.
    func users(of inode: UInt64) -> Int { turns.withLock { $0[inode]?.users ?? 0 } }

    private func leaveTurns(of inode: UInt64) {
        turns.withLock { turns in
            turns[inode]?.users -= 1
            if turns[inode]?.users == 0 { turns[inode] = nil }
        }
    }

    /// Makes a directory unless it exists. A directory whose entry was lost is removed first.
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

    /// Removes a directory, and the directories below it, if their entries were lost. If that fails, the next
    /// ``make(_:_:remove:)`` tries again.
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
