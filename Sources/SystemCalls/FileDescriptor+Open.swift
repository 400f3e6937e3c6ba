import Glibc

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
        /// Does not wait for the other end of a FIFO.
        package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
        /// Creates a file without a name in the directory at the path (O_TMPFILE). Fails with `EOPNOTSUPP`, `EISDIR` or
        /// `ENOENT` if the file system does not support that. The constant is written here because Glibc declares it
        /// only with _GNU_SOURCE.
        package static let nameless = OpenFlags(rawValue: 0x400000 | O_DIRECTORY)
    }

    /// Opens `path`, relative to the working directory (open(2)).
    package static func open(_ path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { Glibc.open(path, flags.rawValue | O_CLOEXEC, mode) }
        return FileDescriptor(owning: number)
    }

    /// Opens `path`, relative to this directory (openat(2)).
    package func open(at path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { openat(rawValue, path, flags.rawValue | O_CLOEXEC, mode) }
        return FileDescriptor(owning: number)
    }
}
