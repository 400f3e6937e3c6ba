import Glibc
import Synchronization

/// An open file description that belongs to this object alone and is closed with it.
package final class FileDescriptor: Sendable {
    /// The number of the descriptor; valid until this object is released.
    package let rawValue: Int32
    /// Whether ``tryLock()`` has acquired the lock.
    let isLocked = Atomic(false)

    /// Takes over an open descriptor.
    package init(owning rawValue: Int32) {
        self.rawValue = rawValue
    }

    deinit {
        // A child process that another thread has forked keeps a copy of the descriptor until it executes its program.
        // With `close` alone the lock would last until then.
        if isLocked.load(ordering: .relaxed) { _ = flock(rawValue, LOCK_UN) }
        // Not repeated on EINTR: Linux has released the number by then, and another thread may use it already.
        close(rawValue)
    }

    /// A second descriptor of the same open file description, closed on exec.
    package func duplicate() throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) }
        return FileDescriptor(owning: number)
    }
}
