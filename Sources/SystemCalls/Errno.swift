import CLinux
import Glibc

/// The error of a system call: the value of `errno` (errno(3)).
public struct Errno: Error, RawRepresentable, Hashable, Sendable {
    public let rawValue: Int32

    public init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// The error of the last failed call on this thread.
    public static var current: Errno { Errno(rawValue: errno) }

    public static let notPermitted = Errno(rawValue: EPERM)
    public static let noSuchFile = Errno(rawValue: ENOENT)
    public static let noSuchDevice = Errno(rawValue: ENXIO)
    public static let interrupted = Errno(rawValue: EINTR)
    public static let inputOutput = Errno(rawValue: EIO)
    public static let badDescriptor = Errno(rawValue: EBADF)
    public static let wouldBlock = Errno(rawValue: EAGAIN)
    public static let outOfMemory = Errno(rawValue: ENOMEM)
    public static let accessDenied = Errno(rawValue: EACCES)
    public static let fileExists = Errno(rawValue: EEXIST)
    public static let crossDevice = Errno(rawValue: EXDEV)
    public static let notDirectory = Errno(rawValue: ENOTDIR)
    public static let isDirectory = Errno(rawValue: EISDIR)
    public static let invalidArgument = Errno(rawValue: EINVAL)
    public static let tooManyOpenFiles = Errno(rawValue: EMFILE)
    public static let fileTooLarge = Errno(rawValue: EFBIG)
    public static let noSpace = Errno(rawValue: ENOSPC)
    public static let illegalSeek = Errno(rawValue: ESPIPE)
    public static let readOnlyFileSystem = Errno(rawValue: EROFS)
    public static let brokenPipe = Errno(rawValue: EPIPE)
    public static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
    public static let notImplemented = Errno(rawValue: ENOSYS)
    public static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
    public static let tooManySymbolicLinks = Errno(rawValue: ELOOP)
    public static let notSupported = Errno(rawValue: EOPNOTSUPP)
    public static let addressInUse = Errno(rawValue: EADDRINUSE)
    public static let connectionReset = Errno(rawValue: ECONNRESET)
    public static let timedOut = Errno(rawValue: ETIMEDOUT)
    public static let quotaExceeded = Errno(rawValue: EDQUOT)

    /// The symbolic name such as "ENOSPC"; "errno 200" for a number without one.
    public var name: String {
        guard let name = strerrorname_np(rawValue) else { return "errno \(rawValue)" }
        return String(cString: name)
    }
}

extension Errno: CustomStringConvertible {
    /// The symbolic name and the system's text: "ENOSPC (No space left on device)".
    public var description: String {
        strerrordesc_np(rawValue) == nil ? name : "\(name) (\(text))"
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
