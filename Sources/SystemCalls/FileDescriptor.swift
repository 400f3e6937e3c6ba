import Glibc
import Synchronization

/// An open file description that belongs to this object alone and is closed with it.
package final class FileDescriptor: Sendable {
    /// The number, valid for as long as this object lives.
    package let rawValue: Int32
    /// Whether ``tryLock()`` has taken the lock.
    let isLocked = Atomic(false)

    /// Takes over an open descriptor.
    package init(owning rawValue: Int32) {
        self.rawValue = rawValue
    }

    deinit {
        // A child that another thread has forked has a copy until it executes its program; closing alone would leave it
        // the lock.
        if isLocked.load(ordering: .relaxed) { _ = flock(rawValue, LOCK_UN) }
        // Never again on EINTR: Linux has released the number by then, and it may be somebody else's already.
        close(rawValue)
    }

    /// A second descriptor of the same open file description, closed on exec.
    package func duplicate() throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) }
        return FileDescriptor(owning: number)
    }
}
