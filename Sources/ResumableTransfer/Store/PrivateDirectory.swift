import Foundation
import SystemCalls

/// A directory with states and locks. Files in it are read and replaced with this type.
package struct PrivateDirectory: Sendable {
    /// The maximum size of a state file in bytes.
    package static let maxFileSize = 1 << 20

    package let path: FilePath
    private let descriptor: FileDescriptor

    private init(path: FilePath, descriptor: FileDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }

    /// Opens the directory at an absolute path, and creates it with mode 0700 if it is missing.
    /// - Throws: `directoryUnusable`, or `directoryNotPrivate`.
    package static func create(_ path: FilePath) throws(StateError) -> PrivateDirectory {
        PrivateDirectory(path: path, descriptor: try createDescriptor(path))
    }

    /// The descriptor of the directory that ``create(_:)`` opens.
    /// - Parameter options: further options, for example that the path must not be a symbolic link.
    static func createDescriptor(
        _ path: FilePath, _ options: FileDescriptor.OpenFlags = []
    ) throws(StateError) -> FileDescriptor {
        let directory: FileDescriptor
        let status: FileStatus
        do throws(Errno) {
            guard !path.hasNUL else { throw .invalidArgument }
            try FileDescriptor.makeDirectories(path)
            directory = try FileDescriptor.open(path, options.union([.readOnly, .directory]))
            status = try directory.status()
        } catch {
            throw .directoryUnusable(path, error)
        }
        guard status.owner == ProcessControl.effectiveUser, status.permissions & 0o022 == 0 else {
            throw .directoryNotPrivate(path)
        }
        return directory
    }

    /// Opens an existing directory.
    /// - Throws: `directoryUnusable`.
    package static func open(_ path: FilePath) throws(StateError) -> PrivateDirectory {
        do throws(Errno) {
            return PrivateDirectory(path: path, descriptor: try FileDescriptor.open(path, [.readOnly, .directory]))
        } catch {
            throw .directoryUnusable(path, error)
        }
    }

    package func path(of name: FilePath) -> FilePath { path.appending(name) }

    /// The sorted names of the files in the directory that are UTF-8; empty if the directory cannot be read.
    package func names() -> [String] { (try? readNames()) ?? [] }

    /// The names that begin with `prefix` and end with `suffix`, in no particular order; empty if the directory cannot
    /// be read.
    package func names(from prefix: FilePath, to suffix: FilePath) -> [FilePath] {
        ((try? descriptor.entryPaths()) ?? []).filter { $0.bytes.starts(with: prefix.bytes) && $0.hasSuffix(suffix) }
    }

    /// The sorted names of the files in the directory that are UTF-8.
    package func readNames() throws(Errno) -> [String] { try descriptor.entryNames().sorted() }

    package func contains(_ name: FilePath) -> Bool { (try? descriptor.status(at: name)) != nil }

    /// The time of the last change of a file, in seconds since 1970; `nil` if there is no such file.
    func modified(_ name: FilePath) -> Int64? { (try? descriptor.status(at: name))?.modified.seconds }

    /// The size of a file in bytes; `nil` if there is no such file.
    package func size(of name: FilePath) -> Int64? { (try? descriptor.status(at: name))?.size }

    // MARK: Files

    /// The content of a file; `nil` if there is none.
    /// - Throws: `fileUnusable`, for example if other users could have written the file, or can read it.
    package func read(_ name: FilePath, atMost limit: Int = maxFileSize) throws(StateError) -> Data? {
        let file: FileDescriptor
        do throws(Errno) {
            file = try descriptor.open(at: name, [.readOnly, .noFollow, .nonBlocking])
        } catch {
            if error == .noSuchFile { return nil }
            throw failure(name, "cannot be read: \(error)")
        }
        let status: FileStatus
        let content: [UInt8]
        do throws(Errno) {
            status = try file.status()
            guard status.isRegular else { throw .fileTooLarge }
            content = try file.content(atMost: limit)
        } catch {
            throw failure(
                name, error == .fileTooLarge ? "does not contain the state of a transfer" : "cannot be read: \(error)")
        }
        guard status.owner == ProcessControl.effectiveUser, status.permissions & 0o077 == 0 else {
            throw failure(name, "must be owned and readable only by you; if you trust its content, use chmod 600")
        }
        return Data(content)
    }

    /// The bytes of a file from `start` on.
    package func content(of name: FilePath, from start: Int64) throws(Errno) -> [UInt8] {
        try descriptor.open(at: name, [.readOnly, .noFollow, .nonBlocking]).content(from: start)
    }

    /// Appends `bytes` to a file.
    /// - Returns: the file, whose synchronization makes the bytes durable.
    package func append(_ bytes: [UInt8], to name: FilePath) throws(Errno) -> FileDescriptor {
        let file = try descriptor.open(at: name, [.writeOnly, .append, .noFollow, .nonBlocking])
        // The offset has no effect with O_APPEND.
        try file.write(bytes, at: 0)
        return file
    }

    private func failure(_ name: FilePath, _ reason: String) -> StateError {
        .fileUnusable(path(of: name), reason: reason)
    }

    static let temporarySuffix: FilePath = ".tmp"

    /// The name of a file until its content is complete. It is always the same, so that the next process replaces the
    /// file of a killed process.
    static func temporaryName(of name: FilePath) -> FilePath { "." + name + temporarySuffix }

    /// Puts `content` in place of a file in one step, and on stable storage. Only its owner can access the file. Only
    /// one thread at a time may replace a file.
    package func replace(_ name: FilePath, with content: Data) throws(Errno) {
        let temporary = Self.temporaryName(of: name)
        try? descriptor.unlink(at: temporary)
        try descriptor.replaceFile(name, with: [UInt8](content), by: temporary)
    }

    /// Removes a file, on stable storage.
    package func remove(_ name: FilePath) {
        unlink(name)
        synchronize()
    }

    /// Removes a file. A crash of the system can restore it until ``synchronize()`` has returned.
    func unlink(_ name: FilePath) { try? descriptor.unlink(at: name) }

    /// Renames a file, and replaces a file that has the new name.
    package func rename(_ name: FilePath, to new: FilePath) throws(Errno) {
        try descriptor.rename(from: name, to: descriptor, as: new)
    }

    /// Renames a file.
    /// - Throws: `fileExists` if there is a file with the new name.
    func rename(_ name: FilePath, toUnused new: FilePath) throws(Errno) {
        try descriptor.renameNoReplace(from: name, to: descriptor, as: new)
    }

    /// Makes all earlier changes of names in the directory durable.
    func synchronize() { try? descriptor.synchronize() }

    // MARK: Locks

    /// Opens a file for reading and writing, and creates it if it is missing.
    package func openFile(_ name: FilePath) throws(Errno) -> FileDescriptor {
        try descriptor.open(at: name, [.readWrite, .create, .noFollow])
    }

    /// Whether `name` is still the name of `file`.
    func isName(_ name: FilePath, of file: FileDescriptor) -> Bool { descriptor.isName(name, of: file) }

    func openExistingLock(_ name: FilePath) -> FileDescriptor? {
        try? descriptor.open(at: name, [.readOnly, .noFollow])
    }
}
