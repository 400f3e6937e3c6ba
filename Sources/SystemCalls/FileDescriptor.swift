import CLinux
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
        // `close` is not repeated on EINTR: Linux has already released the number, and another thread may use it.
        close(rawValue)
    }

    /// A second descriptor of the same open file description, closed on exec.
    package func duplicate() throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { fcntl(rawValue, F_DUPFD_CLOEXEC, 0) }
        return FileDescriptor(owning: number)
    }
}

extension FileDescriptor {
    /// How a file is opened (open(2)). `O_CLOEXEC` is always set.
    package struct OpenFlags: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let readOnly = OpenFlags(rawValue: O_RDONLY)
        package static let writeOnly = OpenFlags(rawValue: O_WRONLY)
        package static let readWrite = OpenFlags(rawValue: O_RDWR)
        package static let create = OpenFlags(rawValue: O_CREAT)
        package static let exclusive = OpenFlags(rawValue: O_EXCL)
        package static let truncate = OpenFlags(rawValue: O_TRUNC)
        package static let append = OpenFlags(rawValue: O_APPEND)
        package static let directory = OpenFlags(rawValue: O_DIRECTORY)
        /// Fails with `ELOOP`, or with `ENOTDIR` together with `directory`, if the last component is a symbolic link.
        package static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
        /// Opens a FIFO without waiting for a process at its other end.
        package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
        /// Creates a file without a name in the directory at the path (O_TMPFILE). Fails with `EOPNOTSUPP`, `EISDIR` or
        /// `ENOENT` if the file system does not support that. The constant is written here because Glibc declares it
        /// only with _GNU_SOURCE.
        package static let nameless = OpenFlags(rawValue: 0x400000 | O_DIRECTORY)
    }

    /// Opens `path`, relative to the working directory (open(2)).
    package static func open(_ path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt {
            path.withCString { Glibc.open($0, flags.rawValue | O_CLOEXEC, mode) }
        }
        return FileDescriptor(owning: number)
    }

    /// Opens `path`, relative to this directory (openat(2)).
    package func open(at path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt {
            path.withCString { openat(rawValue, $0, flags.rawValue | O_CLOEXEC, mode) }
        }
        return FileDescriptor(owning: number)
    }
}

extension FileDescriptor {
    /// A second descriptor of the same open file description. The caller owns and closes it.
    package func duplicateForHandover() throws(Errno) -> Int32 {
        let number = fcntl(rawValue, F_DUPFD_CLOEXEC, 0)
        guard number >= 0 else { throw Errno(rawValue: errno) }
        return number
    }
}

extension FileDescriptor {
    /// Acquires the exclusive lock of the file without waiting; returns false if another open file description has a
    /// lock (flock(2)). The kernel releases the lock when this object is released or the process ends.
    package func tryLock() throws(Errno) -> Bool {
        do {
            _ = try retryingOnInterrupt { flock(rawValue, LOCK_EX | LOCK_NB) }
            isLocked.store(true, ordering: .relaxed)
            return true
        } catch {
            if error == .wouldBlock { return false }
            throw error
        }
    }
    /// Whether another open file description has the exclusive lock. The check acquires a shared lock for a moment, so
    /// a ``tryLock()`` of another process can fail at that moment.
    package func isLockedElsewhere() throws(Errno) -> Bool {
        do {
            _ = try retryingOnInterrupt { flock(rawValue, LOCK_SH | LOCK_NB) }
        } catch {
            if error == .wouldBlock { return true }
            throw error
        }
        _ = flock(rawValue, LOCK_UN)
        return false
    }
}

extension FileDescriptor {
    /// Waits until the content, and the metadata that is needed to read it, is on stable storage (fdatasync(2)).
    ///
    /// After a failure the kernel may have dropped the pages, so a later call that succeeds does not mean that they
    /// were written.
    package func synchronizeData() throws(Errno) {
        _ = try retryingOnInterrupt { fdatasync(rawValue) }
    }

    /// Waits until content and attributes, or the entries of a directory, are on stable storage (fsync(2)).
    package func synchronize() throws(Errno) {
        _ = try retryingOnInterrupt { fsync(rawValue) }
    }

    /// Waits until all changes of the file system that contains this file are on stable storage, those of other programs
    /// included (syncfs(2)). Fails also if a write of another program has failed since the last call for this open
    /// file description.
    package func synchronizeFileSystem() throws(Errno) {
        _ = try retryingOnInterrupt { syncfs(rawValue) }
    }

    /// Whether ``synchronizeFileSystem()`` flushes the cache of the disk and reports all failures: those of contents since
    /// Linux 5.8, those of the file system itself since 5.17, and with ext4 and XFS, of which this is known.
    package var canSynchronizeFileSystem: Bool {
        var status = statfs()
        guard fstatfs(rawValue, &status) == 0 else { return false }
        let isKnown = [ONWARD_EXT4_MAGIC, ONWARD_XFS_MAGIC].contains(Int(status.f_type))
        return isKnown && SystemRelease.current >= SystemRelease(major: 5, minor: 17)
    }

    /// Starts to write the dirty pages of a range. It usually does not wait for the device (sync_file_range(2)).
    package func startWriteBack(at offset: Int64, count: Int64) throws(Errno) {
        _ = try retryingOnInterrupt {
            sync_file_range(rawValue, off_t(offset), off_t(count), UInt32(ONWARD_SYNC_FILE_RANGE_WRITE))
        }
    }

    /// Waits until the pages of a range are written, without any promise of durability (sync_file_range(2)).
    ///
    /// The call consumes the write-back error of this open file description: a later ``synchronizeData()`` on the same
    /// description would not report the error. Use a separate open file description for this call.
    package func awaitWriteBack(at offset: Int64, count: Int64) throws(Errno) {
        let flags =
            ONWARD_SYNC_FILE_RANGE_WAIT_BEFORE | ONWARD_SYNC_FILE_RANGE_WRITE
            | ONWARD_SYNC_FILE_RANGE_WAIT_AFTER
        _ = try retryingOnInterrupt { sync_file_range(rawValue, off_t(offset), off_t(count), UInt32(flags)) }
    }
}
