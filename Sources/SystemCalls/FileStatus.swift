import Glibc

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
