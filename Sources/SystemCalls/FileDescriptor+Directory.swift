import CLinux
import Glibc

extension FileDescriptor {
    /// Makes a directory (mkdirat(2)).
    package func makeDirectory(at path: String, mode: UInt32 = 0o700) throws(Errno) {
        _ = try retryingOnInterrupt { mkdirat(rawValue, path, mode_t(mode)) }
    }

    /// Makes a directory, relative to the working directory (mkdir(2)).
    package static func makeDirectory(_ path: String, mode: UInt32 = 0o700) throws(Errno) {
        _ = try retryingOnInterrupt { mkdir(path, mode_t(mode)) }
    }

    /// Throws unless names can be made in this directory (faccessat(2)).
    package func requireWritableDirectory() throws(Errno) {
        _ = try retryingOnInterrupt { faccessat(rawValue, ".", W_OK | X_OK, AT_EACCESS) }
    }

    /// Removes a name that is no directory (unlinkat(2)).
    package func unlink(at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { unlinkat(rawValue, path, 0) }
    }

    /// Removes an empty directory (unlinkat(2)).
    package func removeDirectory(at path: String) throws(Errno) {
        _ = try retryingOnInterrupt { unlinkat(rawValue, path, AT_REMOVEDIR) }
    }

    /// Gives a file a second name, which must not exist: EEXIST (linkat(2)).
    package func link(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt { linkat(rawValue, path, other.rawValue, newPath, 0) }
    }

    /// Gives a file that was opened as `nameless` its name, which must not exist: EEXIST (linkat(2), by way of /proc, for
    /// the direct one is for root).
    package func link(to directory: FileDescriptor, as path: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            linkat(AT_FDCWD, processPath, directory.rawValue, path, AT_SYMLINK_FOLLOW)
        }
    }

    /// Whether ``link(to:as:)`` can find the file: where /proc is.
    package var canBeLinked: Bool { access(processPath, F_OK) == 0 }

    var processPath: String { "/proc/self/fd/\(rawValue)" }

    /// Moves a name into another directory of the same file system in one step, over whatever file was there
    /// (renameat(2)).
    package func rename(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt { renameat(rawValue, path, other.rawValue, newPath) }
    }

    /// Moves a name in one step to one that must not exist: EEXIST (renameat2(2) with `RENAME_NOREPLACE`).
    ///
    /// File systems that do not know the flag answer EINVAL.
    package func renameNoReplace(from path: String, to other: FileDescriptor, as newPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            renameat2(rawValue, path, other.rawValue, newPath, UInt32(ONWARD_RENAME_NOREPLACE))
        }
    }

    /// Exchanges two names, which both exist, in one step (renameat2(2) with `RENAME_EXCHANGE`).
    ///
    /// File systems that do not know the flag answer EINVAL.
    package func exchange(_ path: String, with other: FileDescriptor, _ otherPath: String) throws(Errno) {
        _ = try retryingOnInterrupt {
            renameat2(rawValue, path, other.rawValue, otherPath, UInt32(ONWARD_RENAME_EXCHANGE))
        }
    }

    /// The names in this directory without "." and "..", in no order; those that are not UTF-8 are left out. For
    /// directories with few entries; ``DirectoryStream`` reads any number.
    package func entryNames() throws(Errno) -> [String] {
        let stream = try DirectoryStream(self)
        var names: [String] = []
        while let name = try stream.next({ name, _ in String(validating: name, as: UTF8.self) }) {
            if let name { names.append(name) }
        }
        return names
    }
}
