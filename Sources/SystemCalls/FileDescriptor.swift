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
    /// - Parameter minimum: the smallest number that the descriptor can have.
    package func duplicate(from minimum: Int32 = 0) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { fcntl(rawValue, F_DUPFD_CLOEXEC, minimum) }
        return FileDescriptor(owning: number)
    }

    /// Makes this descriptor refer to the open file description of `other`, for all its users at once. The former open
    /// file description is closed (dup3(2)).
    package func replace(with other: FileDescriptor) throws(Errno) {
        _ = try retryingOnInterrupt { dup3(other.rawValue, rawValue, O_CLOEXEC) }
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

    /// Removes an entry that is not a directory (unlinkat(2)).
    package func unlink(at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { unlinkat(rawValue, $0, 0) } }
    }

    /// Opens the same file again, at offset 0 and only for reading. The file need not have a name (proc_pid_fd(5)).
    package func reopenedForReading() throws(Errno) -> FileDescriptor {
        try FileDescriptor.open("/proc/self/fd/\(rawValue)", .readOnly)
    }
}

extension FileDescriptor {
    /// A second descriptor of the same open file description. The caller owns and closes it.
    package func duplicateForSending() throws(Errno) -> Int32 {
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

    /// Waits until all changes of the file system that contains this file are on stable storage, including those
    /// of other programs (syncfs(2)). If a write of another program has failed since the last call for this open file
    /// description, this call fails, too.
    package func synchronizeFileSystem() throws(Errno) {
        _ = try retryingOnInterrupt { syncfs(rawValue) }
    }

    /// Whether ``synchronizeFileSystem()`` is known to flush the cache of the disk and to report all failures. This is the
    /// case for ext4 and XFS since Linux 5.17: failed writes of contents are reported since 5.8, failures of the file
    /// system itself since 5.17.
    package var canSynchronizeFileSystem: Bool {
        var status = statfs()
        guard fstatfs(rawValue, &status) == 0 else { return false }
        let isKnown = [ONWARD_EXT4_MAGIC, ONWARD_XFS_MAGIC].contains(UInt32(truncatingIfNeeded: status.f_type))
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

extension FileDescriptor {
    /// Writes `bytes`, or a prefix of them, at the offset and returns how many were written (pwrite(2)).
    package func writeSome(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return 0 }
        return try retryingOnInterrupt { pwrite(rawValue, base, bytes.count, off_t(offset)) }
    }

    /// Writes all of `bytes` at the offset. After an error any prefix of them may be written.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            done += try writeSome(UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset + Int64(done))
        }
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(Errno) {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
            try write(UnsafeRawBufferPointer(buffer), at: offset)
        }
    }

    /// Fills `buffer` from the offset on and returns the number of bytes read, which is smaller than the buffer only at
    /// the end of the file (pread(2)).
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let count = try retryingOnInterrupt {
                pread(rawValue, base + done, buffer.count - done, off_t(offset) + off_t(done))
            }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// The bytes of the file from `start` to its end.
    /// - Throws: `fileTooLarge` if there are more than `limit`; the error of the read.
    package func content(from start: Int64 = 0, atMost limit: Int = .max) throws(Errno) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var content: [UInt8] = []
        while true {
            let count = try read(into: buffer, at: start + Int64(content.count))
            content += buffer[..<count]
            guard content.count <= limit else { throw .fileTooLarge }
            guard count == buffer.count else { return content }
        }
    }

    /// Sets the size of the file (ftruncate(2)).
    package func truncate(to size: Int64) throws(Errno) {
        _ = try retryingOnInterrupt { ftruncate(rawValue, off_t(size)) }
    }

    /// Frees the space of `count` bytes at the offset, which are then zero; the size does not change (fallocate(2)).
    package func punchHole(at offset: Int64, count: Int64) throws(Errno) {
        let mode = Int32(ONWARD_FALLOC_KEEP_SIZE | ONWARD_FALLOC_PUNCH_HOLE)
        _ = try retryingOnInterrupt { fallocate(rawValue, mode, off_t(offset), off_t(count)) }
    }
}

/// The attributes of a file (stat(2)).
package struct FileStatus: Sendable, Hashable {
    /// A point in time of a file system: seconds since 1970 and nanoseconds within the second.
    package struct Time: Sendable, Hashable {
        package var seconds: Int64
        package var nanoseconds: Int64

        package init(seconds: Int64, nanoseconds: Int64) {
            self.seconds = seconds
            self.nanoseconds = nanoseconds
        }
    }

    package var device: UInt64
    package var inode: UInt64
    package var linkCount: UInt64
    /// The type and permission bits.
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    /// The size in bytes.
    package var size: Int64
    /// The time of the last change of the content.
    package var modified: Time
    /// The time of the last change of content or attributes.
    package var changed: Time

    /// The kind of a file (inode(7)).
    package enum Kind: Sendable {
        case regular, directory, symbolicLink, pipe, socket
        /// A character or block device.
        case device
    }

    package var kind: Kind {
        switch mode & UInt32(S_IFMT) {
        case UInt32(S_IFREG): .regular
        case UInt32(S_IFDIR): .directory
        case UInt32(S_IFLNK): .symbolicLink
        case UInt32(S_IFIFO): .pipe
        case UInt32(S_IFSOCK): .socket
        default: .device
        }
    }

    package var isDirectory: Bool { kind == .directory }
    package var isRegular: Bool { kind == .regular }
    package var isSymbolicLink: Bool { kind == .symbolicLink }
    /// The permission bits alone.
    package var permissions: UInt32 { mode & 0o7777 }

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        linkCount = UInt64(status.st_nlink)
        mode = UInt32(status.st_mode)
        owner = UInt32(status.st_uid)
        group = UInt32(status.st_gid)
        size = Int64(status.st_size)
        modified = Time(seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
        changed = Time(seconds: Int64(status.st_ctim.tv_sec), nanoseconds: Int64(status.st_ctim.tv_nsec))
    }
}

extension FileDescriptor {
    /// The attributes of the open file (fstat(2)).
    package func status() throws(Errno) -> FileStatus {
        var status = stat()
        _ = try retryingOnInterrupt { fstat(rawValue, &status) }
        return FileStatus(status)
    }

    /// The attributes of an entry of this directory; symbolic links are not followed (fstatat(2)).
    package func status(at path: String) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try retryingOnInterrupt {
            path.withCString { fstatat(rawValue, $0, &status, AT_SYMLINK_NOFOLLOW) }
        }
        return FileStatus(status)
    }

    /// Sets the time of the last change of the content; the time of the last access does not change (futimens(2)).
    package func setModified(_ time: FileStatus.Time) throws(Errno) {
        // UTIME_OMIT, a macro that Swift does not import.
        let omit = (1 << 30) - 2
        let times = [
            timespec(tv_sec: 0, tv_nsec: omit),
            timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds)),
        ]
        _ = try retryingOnInterrupt { futimens(rawValue, times) }
    }

    /// Sets the permission bits of an entry of this directory without opening it (fchmodat(2)). Symbolic links are
    /// followed.
    package func setPermissions(_ mode: UInt32, at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { fchmodat(rawValue, path, mode_t(mode), 0) }
    }

    /// Sets the permission bits (fchmod(2)).
    package func setPermissions(_ mode: UInt32) throws(Errno) {
        _ = try retryingOnInterrupt { fchmod(rawValue, mode_t(mode)) }
    }

    /// Sets the owner; the group does not change (fchown(2)).
    package func setOwner(_ user: UInt32) throws(Errno) {
        _ = try retryingOnInterrupt { fchown(rawValue, user, gid_t.max) }
    }
}

/// Space of a file system in bytes (statvfs(3)).
package struct FileSystemSpace: Sendable, Hashable {
    /// The bytes that an unprivileged process can still use.
    package var free: Int64
    package var total: Int64

    package init(free: Int64, total: Int64) {
        self.free = free
        self.total = total
    }
}

extension FileDescriptor {
    /// The space of the file system that contains this file.
    package func fileSystemSpace() throws(Errno) -> FileSystemSpace {
        var status = statvfs()
        _ = try retryingOnInterrupt { fstatvfs(rawValue, &status) }
        let unit = Int64(clamping: status.f_frsize)
        return FileSystemSpace(
            free: Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: unit).partialValue,
            total: Int64(clamping: status.f_blocks).multipliedReportingOverflow(by: unit).partialValue)
    }
}
