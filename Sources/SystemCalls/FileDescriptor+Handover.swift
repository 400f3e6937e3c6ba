import Glibc

extension FileDescriptor {
    /// A second descriptor of the same open file description. The caller owns and closes it.
    package func duplicateForHandover() throws(Errno) -> Int32 {
        let number = fcntl(rawValue, F_DUPFD_CLOEXEC, 0)
        guard number >= 0 else { throw Errno(rawValue: errno) }
        return number
    }
}
