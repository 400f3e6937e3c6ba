import Glibc

/// Directories below a directory. They are opened one name after the other, so that no symbolic link is followed and no
/// path is too long for the system.
extension FileDescriptor {
    /// Opens the directory with this name in this directory.
    /// - Throws: `invalidArgument` if the path is not a name (``FilePath/isEntryName``); `notDirectory` if the entry is
    ///   a symbolic link, or something else that is not a directory.
    package func openDirectory(named name: FilePath) throws(Errno) -> FileDescriptor {
        guard name.isEntryName else { throw .invalidArgument }
        return try open(at: name, [.readOnly, .directory, .noFollow])
    }

    /// Opens the directory with this name in this directory, and creates it if it is missing; the umask applies to
    /// `mode`.
    /// - Throws: as ``openDirectory(named:)``.
    package func createDirectory(named name: FilePath, mode: UInt32 = 0o777) throws(Errno) -> FileDescriptor {
        do throws(Errno) { return try openDirectory(named: name) } catch {
            if error != .noSuchFile { throw error }
        }
        do throws(Errno) {
            _ = try retryingOnInterrupt { name.withCString { mkdirat(rawValue, $0, mode_t(mode)) } }
        } catch {
            // Another process may have just created it.
            if error != .fileExists { throw error }
        }
        return try openDirectory(named: name)
    }

    /// Opens the directory at a relative path below this directory; this directory for an empty path.
    /// - Throws: as ``openDirectory(named:)``, for each name of the path.
    package func openDirectory(beneath path: FilePath) throws(Errno) -> FileDescriptor {
        var directory = try open(at: ".", [.readOnly, .directory])
        for name in path.bytes.split(separator: UInt8(ascii: "/")) {
            directory = try directory.openDirectory(named: FilePath(name))
        }
        return directory
    }
}

extension FilePath {
    /// Whether this can be the name of one entry of a directory: it is not empty, "." or "..", and contains neither a
    /// slash nor NUL.
    package var isEntryName: Bool {
        !isEmpty && self != "." && self != ".." && !hasNUL && !bytes.contains(UInt8(ascii: "/"))
    }

    /// This path relative to `ancestor`, both absolute; empty if both are the same. `nil` if this path is not below
    /// `ancestor`.
    package func relative(to ancestor: FilePath) -> FilePath? {
        if self == ancestor { return "" }
        let prefix = ancestor.appending("").bytes
        guard bytes.starts(with: prefix) else { return nil }
        return FilePath(bytes.dropFirst(prefix.count))
    }
}
