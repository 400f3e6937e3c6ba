import Synchronization
import SystemCalls

/// How often a directory could not be made durable since the store was opened.
///
/// Linux reports a failed write once for each open description. What several threads change in one directory is written
/// together, so that the one whose fsync(2) fails is not the only one whose change is in doubt: a success counts only if no
/// directory failed since the change was made.
package struct SynchronizationEpoch: Sendable, Hashable {
    var failures = 0
}

/// The directories of a blob area, as far as their durability is concerned.
final class DirectorySynchronization: Sendable {
    private let failures = Atomic(0)

    var epoch: SynchronizationEpoch { SynchronizationEpoch(failures: failures.load(ordering: .acquiring)) }

    /// Returns once what was changed in the directory is on stable storage.
    /// - Parameter epoch: from before it was changed.
    /// - Throws: the error of fsync(2); `EIO` if one of another thread failed since.
    func synchronize(_ directory: FileDescriptor, since epoch: SynchronizationEpoch) throws(Errno) {
        do throws(Errno) { try directory.synchronize() } catch {
            failures.add(1, ordering: .releasing)
            throw error
        }
        if self.epoch != epoch { throw .inputOutput }
    }
}
