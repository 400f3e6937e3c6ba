import CLinux
import Glibc

// Paths are passed with `withCString`, because the implicit conversion of a String to a pointer allocates a copy.

extension FileDescriptor {
    /// Creates a directory (mkdirat(2)).
    package func makeDirectory(at path: String, mode: UInt32 = 0o700) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { mkdirat(rawValue, $0, mode_t(mode)) } }
    }

    /// Creates a directory, relative to the working directory (mkdir(2)).
    package static func makeDirectory(_ path: String, mode: UInt32 = 0o700) throws(Errno) {
        _ = try retryingOnInterrupt { mkdir(path, mode_t(mode)) }
    }

    /// Throws unless entries can be created in this directory (faccessat(2)).
    package func requireWritableDirectory() throws(Errno) {
        _ = try retryingOnInterrupt { faccessat(rawValue, ".", W_OK | X_OK, AT_EACCESS) }
    }

    /// Removes an entry that is not a directory (unlinkat(2)).
    package func unlink(at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { unlinkat(rawValue, $0, 0) } }
    }

    /// Removes an empty directory (unlinkat(2)).
    package func removeDirectory(at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { unlinkat(rawValue, $0, AT_REMOVEDIR) } }
    }

    /// Gives a file a second name; throws `EEXIST` if that name exists (linkat(2)).
    package func link(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in newPath.withCString { linkat(rawValue, path, other.rawValue, $0, 0) } }
        }
    }

    /// Gives a file that was opened with `nameless` a name; throws `EEXIST` if that name exists (linkat(2)). The call
    /// uses the path of the descriptor in /proc, because only root may pass the descriptor itself.
    package func link(to directory: FileDescriptor, as path: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            linkat(AT_FDCWD, processPath, directory.rawValue, path, AT_SYMLINK_FOLLOW)
        }
    }

    /// Whether ``link(to:as:)`` can work, which needs /proc.
    package var canBeLinked: Bool { access(processPath, F_OK) == 0 }

    var processPath: String { "/proc/self/fd/\(rawValue)" }

    /// Moves an entry to another directory of the same file system atomically (renameat(2)). A file that already has
    /// the new name is replaced.
    package func rename(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in newPath.withCString { renameat(rawValue, path, other.rawValue, $0) } }
        }
    }

    /// Moves an entry atomically; throws `EEXIST` if the new name exists (renameat2(2) with `RENAME_NOREPLACE`).
    ///
    /// Throws `EINVAL` if the file system does not support the flag.
    package func renameNoReplace(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in
                newPath.withCString { renameat2(rawValue, path, other.rawValue, $0, UInt32(ONWARD_RENAME_NOREPLACE)) }
            }
        }
    }

    /// Exchanges two existing entries atomically (renameat2(2) with `RENAME_EXCHANGE`).
    ///
    /// Throws `EINVAL` if the file system does not support the flag.
    package func exchange(_ path: String, with other: FileDescriptor, _ otherPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in
                otherPath.withCString { renameat2(rawValue, path, other.rawValue, $0, UInt32(ONWARD_RENAME_EXCHANGE)) }
            }
        }
    }

    /// The names in this directory without "." and "..", in no particular order. Names that are not UTF-8 are omitted.
    /// Use ``DirectoryStream`` for directories that may have many entries.
    package func entryNames() throws(Errno) -> [String] {
        let stream = try DirectoryStream(self)
        var names: [String] = []
        while let name = try stream.next({ name, _ in String(validating: name, as: UTF8.self) }) {
            if let name { names.append(name) }
        }
        return names
    }
}
