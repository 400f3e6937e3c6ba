import Foundation
import Glibc
import ResumableTransfer
import SystemCalls

/// A directory with states and locks. Files in it are read and replaced with this type.
struct PrivateDirectory: Sendable {
    static let maxFileSize = 1 << 20

    let path: FilePath
    private let descriptor: FileDescriptor

    /// `$XDG_STATE_HOME/onward`, or `~/.local/state/onward`.
    static var statePath: FilePath { TransferClient.Configuration.defaultStoragePath.directory }

    /// The directory for states, created with mode 0700 if it is missing.
    static func states() throws(CommandFailure) -> PrivateDirectory {
        let states: PrivateDirectory
        let isPrivate: Bool
        do throws(Errno) {
            try makeDirectories(statePath)
            let directory = try FileDescriptor.open(statePath, [.readOnly, .directory])
            let status = try directory.status()
            isPrivate = status.owner == geteuid() && status.permissions & 0o022 == 0
            states = PrivateDirectory(path: statePath, descriptor: directory)
        } catch {
            throw unusable("cannot be used: \(error.text)")
        }
        guard isPrivate else { throw unusable("must be owned by you and not writable by others") }
        return states
    }

    private static func unusable(_ reason: String) -> CommandFailure {
        CommandFailure(
            .inputOutput, "state-directory",
            """
            the directory \(statePath) for states \(reason)
            Set XDG_STATE_HOME to use another directory for all states, or give put or get a state file with --state.
            """)
    }

    /// The directory for states if it exists. It is not created.
    static func existingStates() -> PrivateDirectory? {
        (try? FileDescriptor.open(statePath, [.readOnly, .directory])).map {
            PrivateDirectory(path: statePath, descriptor: $0)
        }
    }

    /// The directory of a state file that the user names.
    static func of(_ file: FilePath) throws(CommandFailure) -> PrivateDirectory {
        let path = file.directory
        do throws(Errno) {
            return PrivateDirectory(path: path, descriptor: try FileDescriptor.open(path, [.readOnly, .directory]))
        } catch {
            throw CommandFailure(
                .inputOutput, "state-directory",
                "the directory \(path) cannot be used: \(error.text)")
        }
    }

    private static func makeDirectories(_ path: FilePath) throws(Errno) {
        for directory in path.ancestry {
            do throws(Errno) {
                try FileDescriptor.makeDirectory(directory)
            } catch {
                // A directory that exists is no error, even if its parent permits no new entries.
                if error != .fileExists && !directory.isDirectory { throw error }
            }
        }
    }

    func path(of name: FilePath) -> FilePath { path.appending(name) }

    func names() -> [String] { ((try? descriptor.entryNames()) ?? []).sorted() }

    func contains(_ name: FilePath) -> Bool { (try? descriptor.status(at: name)) != nil }

    // MARK: Files

    /// The content of a file; `nil` if there is none.
    /// - Throws: a failure also if other users could have written the file, or can read it.
    func read(_ name: FilePath, atMost limit: Int64 = Int64(maxFileSize)) throws(CommandFailure) -> Data? {
        let file: FileDescriptor
        do throws(Errno) {
            file = try descriptor.open(at: name, [.readOnly, .noFollow, .nonBlocking])
        } catch {
            if error == .noSuchFile { return nil }
            throw failure(name, "cannot be read: \(error)")
        }
        let status: FileStatus
        let content: Data
        do throws(Errno) {
            status = try file.status()
            content = try PrivateDirectory.content(of: file, size: Int(min(status.size, limit)))
        } catch {
            throw failure(name, "cannot be read: \(error)")
        }
        guard status.isRegular, status.size <= limit else {
            throw failure(name, "does not contain the state of a transfer")
        }
        guard status.owner == geteuid(), status.permissions & 0o077 == 0 else {
            throw failure(name, "must be owned by you and private; if you trust its content, use chmod 600")
        }
        return content
    }

    private static func content(of file: FileDescriptor, size: Int) throws(Errno) -> Data {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, size), alignment: 1)
        defer { buffer.deallocate() }
        return Data(buffer.prefix(try file.read(into: buffer, at: 0)))
    }

    /// The bytes of a file from `start` on.
    func content(of name: FilePath, from start: Int64) throws(Errno) -> Data {
        let file = try descriptor.open(at: name, [.readOnly, .noFollow, .nonBlocking])
        let count = Int(max(0, try file.status().size - start))
        guard count > 0 else { return Data() }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { buffer.deallocate() }
        return Data(buffer.prefix(try file.read(into: buffer, at: start)))
    }

    /// Appends `bytes` to a file, on stable storage.
    func append(_ bytes: [UInt8], to name: FilePath) throws(Errno) {
        let file = try descriptor.open(at: name, [.writeOnly, .append, .noFollow, .nonBlocking])
        // The offset has no effect with O_APPEND.
        try file.write(bytes, at: 0)
        try file.synchronizeData()
    }

    private func failure(_ name: FilePath, _ reason: String) -> CommandFailure {
        CommandFailure(.inputOutput, "state-unusable", "the state file \(path(of: name)) \(reason)")
    }

    /// Puts `content` in place of a file in one step, and on stable storage. The file is for its owner alone.
    func replace(_ name: FilePath, with content: Data) throws(Errno) {
        // The name is always the same, so that the next process removes the file of a killed process.
        let temporary = "." + name + ".tmp"
        do throws(Errno) {
            try? descriptor.unlink(at: temporary)
            let file = try descriptor.open(at: temporary, [.writeOnly, .create, .exclusive, .noFollow])
            try file.write([UInt8](content), at: 0)
            try file.synchronize()
            try descriptor.rename(from: temporary, to: descriptor, as: name)
            try descriptor.synchronize()
        } catch {
            try? descriptor.unlink(at: temporary)
            throw error
        }
    }

    func remove(_ name: FilePath) {
        try? descriptor.unlink(at: name)
        try? descriptor.synchronize()
    }

    // MARK: Locks

    /// Opens a file to lock, and creates it if it is missing.
    func openLock(_ name: FilePath) throws(Errno) -> FileDescriptor {
        try descriptor.open(at: name, [.readWrite, .create, .noFollow])
    }

    /// Whether `name` is still the name of `file`.
    func isNamed(_ file: FileDescriptor, _ name: FilePath) -> Bool {
        guard let own = try? file.status(), let there = try? descriptor.status(at: name) else { return false }
        return own.inode == there.inode && own.device == there.device
    }

    func unlinkLock(_ name: FilePath) { try? descriptor.unlink(at: name) }

    func openExistingLock(_ name: FilePath) -> FileDescriptor? {
        try? descriptor.open(at: name, [.readOnly, .noFollow])
    }
}
