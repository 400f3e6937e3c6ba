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
        _ = try retryingOnInterrupt { path.withCString { mkdir($0, mode_t(mode)) } }
    }

    /// Throws unless entries can be created in this directory (faccessat(2)).
    package func requireWritableDirectory() throws(Errno) {
        _ = try retryingOnInterrupt { faccessat(rawValue, ".", W_OK | X_OK, AT_EACCESS) }
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
            processPath.withCString { source in
                path.withCString { linkat(AT_FDCWD, source, directory.rawValue, $0, AT_SYMLINK_FOLLOW) }
            }
        }
    }

    /// Whether ``link(to:as:)`` can work, which needs /proc.
    package var canBeLinked: Bool { processPath.withCString { access($0, F_OK) } == 0 }

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

    /// The names in this directory without "." and "..", in no particular order. Use ``DirectoryStream`` for directories
    /// that may have many entries.
    package func entryPaths() throws(Errno) -> [FilePath] {
        let stream = try DirectoryStream(self)
        var names: [FilePath] = []
        while let name = try stream.next({ name, _ in FilePath(name) }) { names.append(name) }
        return names
    }

    /// The names of ``entryPaths()`` that are UTF-8.
    package func entryNames() throws(Errno) -> [String] { try entryPaths().compactMap(\.text) }
}

/// Reads the entries of a directory one by one (readdir(3)), in constant memory. Use it from one thread at a time.
package final class DirectoryStream {
    /// The kind of an entry, as the directory stores it; `unknown` if the file system does not store kinds.
    package enum Kind: Sendable, Hashable {
        case regular, directory, other, unknown
    }

    // Owned by this object from `init` to `deinit`.
    private let stream: OpaquePointer

    /// Starts at the first entry, independently of other readers of the directory.
    package init(_ directory: FileDescriptor) throws(Errno) {
        // The directory is opened again, because duplicated descriptors share their position.
        let number = try retryingOnInterrupt {
            openat(directory.rawValue, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard let stream = fdopendir(number) else {
            let error = Errno.current
            close(number)
            throw error
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// Calls `body` with the name and the kind of the next entry other than "." and "..", in no particular order. The
    /// bytes of the name are valid only during the call. Returns `nil` at the end.
    ///
    /// An entry that exists during the entire iteration is returned once. An entry that is created or removed during
    /// the iteration may be missing.
    package func next<Result>(_ body: (UnsafeRawBufferPointer, Kind) -> Result) throws(Errno) -> Result? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw Errno.current }
                return nil
            }
            let kind: Kind =
                switch Int(entry.pointee.d_type) {
                case Int(DT_REG): .regular
                case Int(DT_DIR): .directory
                case Int(DT_UNKNOWN): .unknown
                default: .other
                }
            let result = withUnsafeBytes(of: &entry.pointee.d_name) { bytes -> Result? in
                let name = UnsafeRawBufferPointer(start: bytes.baseAddress, count: Self.length(of: bytes))
                return Self.isItselfOrParent(name) ? nil : body(name, kind)
            }
            if let result { return result }
        }
    }

    private static func length(of name: UnsafeRawBufferPointer) -> Int {
        guard let start = name.baseAddress else { return 0 }
        return strnlen(start.assumingMemoryBound(to: CChar.self), name.count)
    }

    private static func isItselfOrParent(_ name: UnsafeRawBufferPointer) -> Bool {
        let dot = UInt8(ascii: ".")
        return name.count == 1 && name[0] == dot || name.count == 2 && name[0] == dot && name[1] == dot
    }
}
