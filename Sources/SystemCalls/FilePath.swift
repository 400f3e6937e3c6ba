import CLinux
import Glibc

/// A path of the file system. A valid path can contain any bytes except NUL. Paths are compared byte by byte.
///
/// Swift compares strings by canonical equivalence, and replaces bytes that are not UTF-8. In the file system "é" and
/// "e\u{301}" are two names, and a name can have bytes that are not UTF-8.
package struct FilePath: Sendable, Hashable {
    /// The bytes of the path, without NUL at the end.
    package let bytes: [UInt8]

    /// Creates a path from its bytes.
    package init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// The UTF-8 bytes of `text`, without any normalization.
    package init(_ text: String) { bytes = Array(text.utf8) }

    private static let slash = UInt8(ascii: "/")

    /// Whether the path has no bytes.
    package var isEmpty: Bool { bytes.isEmpty }
    /// Whether the path begins with a slash.
    package var isAbsolute: Bool { bytes.first == Self.slash }
    /// Whether the path contains a NUL. System calls would ignore the bytes from the NUL on.
    package var hasNUL: Bool { bytes.contains(0) }

    /// The bytes as a string; `nil` if they are not UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The bytes as a string, with U+FFFD in place of bytes that are not UTF-8.
    package var repairedText: String { String(decoding: bytes, as: UTF8.self) }

    /// Calls `body` with the bytes followed by NUL, as system calls expect them.
    @inline(__always)
    package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { rebound in
                // An array with at least one element has a base address.
                body(rebound.baseAddress!)
            }
        }
    }
}

// MARK: - Components

extension FilePath {
    /// The part after the last slash; empty for a path that ends with a slash.
    package var lastComponent: FilePath {
        guard let slash = bytes.lastIndex(of: Self.slash) else { return self }
        return FilePath(bytes[(slash + 1)...])
    }

    /// The part before the last slash; "/" for a path in the root directory, "." for a path without a slash.
    package var directory: FilePath {
        guard let slash = bytes.lastIndex(of: Self.slash) else { return "." }
        return slash == 0 ? "/" : FilePath(bytes[..<slash])
    }

    /// The path without slashes at its end; "/" stays "/".
    package var withoutTrailingSlashes: FilePath {
        let end = bytes.lastIndex { $0 != Self.slash } ?? 0
        return FilePath(bytes.prefix(end + 1))
    }

    /// The path of `name` in this directory.
    package func appending(_ name: FilePath) -> FilePath {
        FilePath(bytes.last == Self.slash ? bytes + name.bytes : bytes + [Self.slash] + name.bytes)
    }

    /// Whether the bytes of the path end with those of `suffix`.
    package func hasSuffix(_ suffix: FilePath) -> Bool {
        bytes.count >= suffix.bytes.count && bytes.suffix(suffix.bytes.count).elementsEqual(suffix.bytes)
    }

    /// The paths of all parent directories, from the root on, and the path itself.
    package var ancestry: [FilePath] {
        let ends = bytes.indices.filter { bytes[$0] == Self.slash && $0 > 0 } + [bytes.count]
        return ends.map { FilePath(bytes[..<$0]) }
    }

    /// The bytes of both paths, without a separator between them.
    package static func + (left: FilePath, right: FilePath) -> FilePath { FilePath(left.bytes + right.bytes) }
}

// MARK: - Properties of the file

extension FilePath {
    /// The absolute path without symbolic links (realpath(3)).
    package func resolved() throws(Errno) -> FilePath {
        guard !isEmpty, !hasNUL else { throw .noSuchFile }
        var error = Errno.noSuchFile
        let found = withCString { path -> FilePath? in
            guard let pointer = realpath(path, nil) else {
                error = .current
                return nil
            }
            defer { free(pointer) }
            return FilePath(UnsafeBufferPointer(start: pointer, count: strlen(pointer)).map { UInt8(bitPattern: $0) })
        }
        guard let found else { throw error }
        return found
    }

    /// The absolute path. Symbolic links are resolved in the directory, not in the last component. `nil` if the
    /// directory does not exist.
    package var absolute: FilePath? {
        guard !isEmpty, !hasNUL else { return nil }
        let trimmed = withoutTrailingSlashes
        let name = trimmed.lastComponent
        // These components name directories, not entries of a directory.
        if ["", ".", ".."].contains(name) { return try? trimmed.resolved() }
        return (try? trimmed.directory.resolved())?.appending(name)
    }

    /// Whether the path names a directory; symbolic links are followed.
    package var isDirectory: Bool { (try? status().isDirectory) ?? false }

    /// The attributes of the file at the path; symbolic links are followed (stat(2)).
    package func status() throws(Errno) -> FileStatus {
        var status = stat()
        _ = try retryingOnInterrupt { withCString { stat($0, &status) } }
        return FileStatus(status)
    }

    /// Detaches the file system that is mounted at the path. The kernel unmounts it as soon as no process uses it
    /// (umount2(2)).
    package func unmount() throws(Errno) {
        _ = try retryingOnInterrupt { withCString { umount2($0, Int32(MNT_DETACH)) } }
    }

    /// The path in an environment variable; `nil` if the variable is not set.
    package static func environment(_ name: String) -> FilePath? {
        getenv(name).map { FilePath(UnsafeBufferPointer(start: $0, count: strlen($0)).map { UInt8(bitPattern: $0) }) }
    }
}

// MARK: - As text

extension FilePath: ExpressibleByStringLiteral {
    /// Creates a path from the UTF-8 bytes of a literal.
    package init(stringLiteral text: String) { self.init(text) }
}

extension FilePath: CustomStringConvertible {
    /// The path on one line for people, with `\xHH` in place of control characters and of bytes that are not UTF-8.
    package var description: String {
        escaped(controls: true) { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return "\\x" + (digits.utf8.count == 1 ? "0" : "") + digits
        }
    }

    /// The path as text, in which the result of `escape` replaces each byte that is not UTF-8 and, if `controls` is
    /// true, each byte of a control character.
    package func escaped(controls isForControls: Bool = false, _ escape: (UInt8) -> String) -> String {
        var result = ""
        var remaining = bytes[...]
        while !remaining.isEmpty {
            var decoder = UTF8()
            var iterator = remaining.makeIterator()
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar):
                let width = UTF8.width(scalar)
                let isControl = scalar.properties.generalCategory == .control
                if isForControls && isControl {
                    result += remaining.prefix(width).map(escape).joined()
                } else {
                    result.unicodeScalars.append(scalar)
                }
                remaining = remaining.dropFirst(width)
            case .error, .emptyInput:
                result += escape(remaining[remaining.startIndex])
                remaining = remaining.dropFirst()
            }
        }
        return result
    }
}

extension FilePath: Codable {
    private enum CodingKeys: String, CodingKey { case bytes }

    /// Decodes a string, or an object with the bytes.
    package init(from decoder: any Decoder) throws {
        if let container = try? decoder.singleValueContainer(), let text = try? container.decode(String.self) {
            self.init(text)
        } else {
            self.init(try decoder.container(keyedBy: CodingKeys.self).decode([UInt8].self, forKey: .bytes))
        }
    }

    /// Encodes a string, or an object with the bytes if they are not UTF-8.
    package func encode(to encoder: any Encoder) throws {
        if let text {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        } else {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(bytes, forKey: .bytes)
        }
    }
}

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

    /// Removes an empty directory (unlinkat(2)).
    package func removeDirectory(at path: FilePath) throws(Errno) {
        _ = try retryingOnInterrupt { path.withCString { unlinkat(rawValue, $0, AT_REMOVEDIR) } }
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

    /// Moves an entry atomically; throws `EEXIST` if the new name exists, and `EINVAL` if the file system does not
    /// support this (renameat2(2) with `RENAME_NOREPLACE`).
    package func renameNoReplace(
        from path: FilePath, to other: FileDescriptor, as newPath: FilePath
    ) throws(Errno) {
        _ = try retryingOnInterrupt {
            path.withCString { path in
                newPath.withCString { renameat2(rawValue, path, other.rawValue, $0, UInt32(ONWARD_RENAME_NOREPLACE)) }
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
