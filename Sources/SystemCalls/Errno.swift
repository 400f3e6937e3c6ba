import CLinux
import Glibc

/// The error of a system call: the value of `errno` (errno(3)).
public struct Errno: Error, RawRepresentable, Hashable, Sendable {
    /// The value of `errno`.
    public let rawValue: Int32

    /// Creates an error from a value of `errno`.
    public init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// The error of the last failed call on this thread.
    public static var current: Errno { Errno(rawValue: errno) }

    /// `EPERM`: operation not permitted (errno(3)).
    public static let notPermitted = Errno(rawValue: EPERM)
    /// `ENOENT`: no such file or directory (errno(3)).
    public static let noSuchFile = Errno(rawValue: ENOENT)
    /// `ENXIO`: no such device or address (errno(3)).
    public static let noSuchDevice = Errno(rawValue: ENXIO)
    /// `EINTR`: interrupted system call (errno(3)).
    public static let interrupted = Errno(rawValue: EINTR)
    /// `EIO`: input/output error (errno(3)).
    public static let inputOutput = Errno(rawValue: EIO)
    /// `EBADF`: bad file descriptor (errno(3)).
    public static let badDescriptor = Errno(rawValue: EBADF)
    /// `EAGAIN`: resource temporarily unavailable (errno(3)).
    public static let wouldBlock = Errno(rawValue: EAGAIN)
    /// `ENOMEM`: cannot allocate memory (errno(3)).
    public static let outOfMemory = Errno(rawValue: ENOMEM)
    /// `EACCES`: permission denied (errno(3)).
    public static let accessDenied = Errno(rawValue: EACCES)
    /// `EEXIST`: file exists (errno(3)).
    public static let fileExists = Errno(rawValue: EEXIST)
    /// `EXDEV`: invalid cross-device link (errno(3)).
    public static let crossDevice = Errno(rawValue: EXDEV)
    /// `ENOTDIR`: not a directory (errno(3)).
    public static let notDirectory = Errno(rawValue: ENOTDIR)
    /// `EISDIR`: is a directory (errno(3)).
    public static let isDirectory = Errno(rawValue: EISDIR)
    /// `EINVAL`: invalid argument (errno(3)).
    public static let invalidArgument = Errno(rawValue: EINVAL)
    /// `EMFILE`: too many open files (errno(3)).
    public static let tooManyOpenFiles = Errno(rawValue: EMFILE)
    /// `EFBIG`: file too large (errno(3)).
    public static let fileTooLarge = Errno(rawValue: EFBIG)
    /// `ENOSPC`: no space left on device (errno(3)).
    public static let noSpace = Errno(rawValue: ENOSPC)
    /// `ESPIPE`: illegal seek (errno(3)).
    public static let illegalSeek = Errno(rawValue: ESPIPE)
    /// `EROFS`: read-only file system (errno(3)).
    public static let readOnlyFileSystem = Errno(rawValue: EROFS)
    /// `EPIPE`: broken pipe (errno(3)).
    public static let brokenPipe = Errno(rawValue: EPIPE)
    /// `ENAMETOOLONG`: file name too long (errno(3)).
    public static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
    /// `ENOSYS`: function not implemented (errno(3)).
    public static let notImplemented = Errno(rawValue: ENOSYS)
    /// `ENOTEMPTY`: directory not empty (errno(3)).
    public static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
    /// `ELOOP`: too many levels of symbolic links (errno(3)).
    public static let tooManySymbolicLinks = Errno(rawValue: ELOOP)
    /// `EOPNOTSUPP`: operation not supported (errno(3)).
    public static let notSupported = Errno(rawValue: EOPNOTSUPP)
    /// `EADDRINUSE`: address already in use (errno(3)).
    public static let addressInUse = Errno(rawValue: EADDRINUSE)
    /// `ECONNRESET`: connection reset by peer (errno(3)).
    public static let connectionReset = Errno(rawValue: ECONNRESET)
    /// `ETIMEDOUT`: connection timed out (errno(3)).
    public static let timedOut = Errno(rawValue: ETIMEDOUT)
    /// `EDQUOT`: disk quota exceeded (errno(3)).
    public static let quotaExceeded = Errno(rawValue: EDQUOT)
    /// `ENOKEY`: required key not available (errno(3)).
    package static let missingKey = Errno(rawValue: ENOKEY)

    /// The symbolic name such as "ENOSPC"; "errno 200" for a number without a symbolic name.
    public var name: String {
        guard let name = strerrorname_np(rawValue) else { return "errno \(rawValue)" }
        return String(cString: name)
    }
}

extension Errno: CustomStringConvertible {
    /// The system's text with the symbolic name: "No space left on device (ENOSPC)".
    public var description: String {
        strerrordesc_np(rawValue) == nil ? name : "\(text) (\(name))"
    }

    /// The system's text alone: "No space left on device".
    public var text: String {
        guard let text = strerrordesc_np(rawValue) else { return name }
        return String(cString: text)
    }
}

/// Runs a call that reports failure with -1, and repeats it if a signal interrupts it.
@inline(__always)
package func retryingOnInterrupt<Result: FixedWidthInteger>(_ call: () -> Result) throws(Errno) -> Result {
    while true {
        let result = call()
        if result != -1 { return result }
        let error = Errno.current
        if error != .interrupted { throw error }
    }
}
