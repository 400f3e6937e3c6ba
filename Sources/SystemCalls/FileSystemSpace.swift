import Glibc

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
    /// The space of the file system that holds this file.
    package func fileSystemSpace() throws(Errno) -> FileSystemSpace {
        var status = statvfs()
        _ = try retryingOnInterrupt { fstatvfs(rawValue, &status) }
        let unit = Int64(clamping: status.f_frsize)
        return FileSystemSpace(
            free: Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: unit).partialValue,
            total: Int64(clamping: status.f_blocks).multipliedReportingOverflow(by: unit).partialValue)
    }
}
