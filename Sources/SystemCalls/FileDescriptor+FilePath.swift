import Glibc

/// The calls of ``FileDescriptor`` with paths that may contain any bytes.
extension FileDescriptor {
    /// Opens `path`, relative to the working directory (open(2)).
    package static func open(
        _ path: FilePath, _ flags: OpenFlags, mode: UInt32 = 0o600
    ) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt {
            path.withCString { Glibc.open($0, flags.rawValue | O_CLOEXEC, mode) }
        }
        return FileDescriptor(owning: number)
    }

    /// Opens `path`, relative to this directory (openat(2)).
    package func open(at path: FilePath, _ flags: OpenFlags, mode: UInt32 = 0o600) throws(Errno) -> FileDescriptor {
        let number = try retryingOnInterrupt {
            path.withCString { openat(rawValue, $0, flags.rawValue | O_CLOEXEC, mode) }
        }
        return FileDescriptor(owning: number)
    }

    /// The attributes of an entry of this directory; symbolic links are not followed (fstatat(2)).
    package func status(at path: FilePath) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try retryingOnInterrupt { path.withCString { fstatat(rawValue, $0, &status, AT_SYMLINK_NOFOLLOW) } }
        return FileStatus(status)
    }

    /// Whether an entry of this directory is the open file: both have the same device and inode. The entry may have been
    /// removed, or its name given to another file, since the file was opened.
    /// - Returns: also `false` if the attributes of one of them cannot be read.
    package func isName(_ path: FilePath, of file: FileDescriptor) -> Bool {
        guard let entry = try? status(at: path), let opened = try? file.status() else { return false }
        return entry.inode == opened.inode && entry.device == opened.device
    }

    /// Creates a directory, relative to the working directory (mkdir(2)).
    package static func makeDirectory(_ path: FilePath, mode: UInt32 = 0o700) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { mkdir($0, mode_t(mode)) } }
    }

    /// Removes an entry that is not a directory (unlinkat(2)).
    package func unlink(at path: FilePath) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { unlinkat(rawValue, $0, 0) } }
    }

    /// Gives a file that was opened with `nameless` a name; throws `EEXIST` if that name exists (linkat(2)).
    package func link(to directory: FileDescriptor, as path: FilePath) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { linkat(AT_FDCWD, processPath, directory.rawValue, $0, AT_SYMLINK_FOLLOW) }
        }
    }

    /// Moves an entry to another directory of the same file system atomically (renameat(2)). A file that already has
    /// the new name is replaced.
    package func rename(from path: FilePath, to other: FileDescriptor, as newPath: FilePath) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in
                newPath.withCString { renameat(rawValue, path, other.rawValue, $0) }
            }
        }
    }
}

extension FileDescriptor {
    /// Creates the directory at an absolute path with mode 0700, and its missing parent directories.
    package static func makeDirectories(_ path: FilePath) throws(Errno) {
        guard path.isAbsolute else { throw .invalidArgument }
        var missing: [FilePath] = []
        for directory in path.ancestry.reversed() {
            do throws(Errno) {
                try makeDirectory(directory)
                break
            } catch {
                if error == .fileExists { break }
                guard error == .noSuchFile else { throw error }
                missing.append(directory)
            }
        }
        for directory in missing.reversed() {
            do throws(Errno) {
                try makeDirectory(directory)
            } catch {
                if error != .fileExists { throw error }
            }
        }
    }

    /// Creates or replaces a file of this directory atomically, and waits until it is on stable storage. The new file
    /// has mode 0600. After a crash at any time the file has the old content or the new content.
    /// - Parameter temporary: the name of the new file until it is complete. After a crash a file with this name may
    ///   remain.
    package func replaceFile(_ name: FilePath, with content: [UInt8], by temporary: FilePath) throws(Errno) {
        do throws(Errno) {
            let file = try open(at: temporary, [.writeOnly, .create, .exclusive, .noFollow])
            try file.write(content, at: 0)
            try file.synchronize()
            try rename(from: temporary, to: self, as: name)
            try synchronize()
        } catch {
            // After EEXIST the file belongs to another writer.
            if error != .fileExists { try? unlink(at: temporary) }
            throw error
        }
    }
}
