import Glibc

extension FileDescriptor {
    /// How a file is opened (open(2)). `O_CLOEXEC` is always set.
    public struct OpenFlags: OptionSet, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }

        public static let readOnly = OpenFlags(rawValue: O_RDONLY)
        public static let writeOnly = OpenFlags(rawValue: O_WRONLY)
        public static let readWrite = OpenFlags(rawValue: O_RDWR)
        public static let create = OpenFlags(rawValue: O_CREAT)
        public static let exclusive = OpenFlags(rawValue: O_EXCL)
        public static let truncate = OpenFlags(rawValue: O_TRUNC)
        public static let append = OpenFlags(rawValue: O_APPEND)
        public static let directory = OpenFlags(rawValue: O_DIRECTORY)
        /// Fails with ELOOP, or ENOTDIR together with `directory`, where the last component is a symbolic link.
        public static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
        /// Does not wait for the other end of a FIFO.
        public static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
        /// A new file without a name, in the directory that is named in its place. Not every file system knows such files:
        /// EOPNOTSUPP, EISDIR or ENOENT.
        public static let nameless = OpenFlags(rawValue: 0x400000 | O_DIRECTORY)  // O_TMPFILE, which needs _GNU_SOURCE.
    }

    /// Opens `path`, relative to the working directory (open(2)).
    public static func open(_ path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { Glibc.open(path, flags.rawValue | O_CLOEXEC, mode) }
        return FileDescriptor(owning: number)
    }

    /// Opens `path`, relative to this directory (openat(2)).
    public func open(at path: String, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt { openat(rawValue, path, flags.rawValue | O_CLOEXEC, mode) }
        return FileDescriptor(owning: number)
    }
}
