import Foundation
import SystemCalls

/// The state file of one transfer, locked until ``release()`` is called or this object is released.
package final class StateFile: Sendable {
    /// The ends of the names of files in a directory with states.
    package static let suffix: FilePath = ".state"
    package static let lockSuffix: FilePath = ".lock"

    private struct Saves {
        /// The content that was read or saved last; `nil` if there is none.
        var stored: StoredTransfer?
        var failure: Errno?
    }

    private let directory: PrivateDirectory
    private let fileName: FilePath
    private let locks: Monitor<[StateLock]>
    private let saves = Monitor(Saves())

    /// - Parameter locks: the locks that are held for the file.
    package init(_ fileName: FilePath, in directory: PrivateDirectory, locks: [StateLock]) {
        self.directory = directory
        self.fileName = fileName
        self.locks = Monitor(locks)
    }

    /// Locks the state `name` of a directory.
    /// - Throws: `inUse` if another transfer or process has locked it; `lockUnusable`.
    package static func lock(_ name: FilePath, in directory: PrivateDirectory) throws(StateError) -> StateFile {
        let lock = try StateLock.acquire(name + lockSuffix, in: directory)
        return StateFile(name + suffix, in: directory, locks: [lock])
    }

    /// The path of the file.
    package var path: FilePath { directory.path(of: fileName) }

    /// Returns the state that an earlier run saved; `nil` if there is none.
    /// - Throws: `fileUnusable`, or `damaged`.
    package func load() throws(StateError) -> StoredTransfer? {
        guard let data = try directory.read(fileName) else { return nil }
        let stored = try StoredTransfer.decode(data, from: path)
        saves.withLock { $0.stored = stored }
        return stored
    }

    /// Saves resume data for a later run, in place of the data that was read or saved last. All other content is kept.
    /// If that fails, ``saveFailure`` is set, and the earlier state is kept.
    /// - Parameters:
    ///   - sent: the position up to which an upload has sent bytes; `nil` for a download.
    ///   - change: sets the values that the program stores with the transfer.
    package func save(
        _ data: ResumeData, sent: Int64?, with change: @escaping @Sendable (inout StoredTransfer) -> Void
    ) async {
        await BlockingWork.run { [self] in
            var stored = saves.withLock { $0.stored } ?? StoredTransfer(data, sent: nil, savedAt: 0)
            stored.resumeData = data
            stored.sent = sent
            stored.savedAt = SystemClock.realtimeSeconds()
            change(&stored)
            save(stored)
        }
    }

    /// Saves the state for a later run, as ``save(_:sent:with:)`` does.
    package func save(_ stored: StoredTransfer) {
        let data = try? stored.encoded()
        // The lock orders concurrent saves.
        saves.withLock { saves in
            guard let data else {
                saves.failure = .invalidArgument
                return
            }
            do throws(Errno) {
                try directory.replace(fileName, with: data)
                saves = Saves(stored: stored)
            } catch {
                saves.failure = error
            }
        }
    }

    /// The position, in bytes, of the state that was read or saved last; `nil` if there is none.
    package var savedPosition: Int64? { saves.withLock { $0.stored?.resumeData.position } }

    /// The error of the last attempt to save; `nil` if it succeeded.
    package var saveFailure: Errno? { saves.withLock { $0.failure } }

    /// Removes the file, on stable storage.
    package func remove() {
        unlink()
        directory.synchronize()
    }

    /// Removes the file. The caller synchronizes the directory.
    func unlink() {
        directory.unlink(fileName)
        saves.withLock { $0.stored = nil }
    }

    /// Ends the use of the file, which must not be changed afterwards.
    /// - Returns: the locks, which are held until their objects are released.
    @discardableResult
    package func release() -> [StateLock] {
        locks.withLock { locks in
            defer { locks = [] }
            return locks
        }
    }
}

/// A lock that is held while a transfer runs, so that only one process at a time runs it. The lock ends with the
/// process, however the process ends.
package final class StateLock: Sendable {
    private let directory: PrivateDirectory
    private let name: Monitor<FilePath>
    private let file: FileDescriptor

    private init(_ directory: PrivateDirectory, _ name: FilePath, _ file: FileDescriptor) {
        self.directory = directory
        self.name = Monitor(name)
        self.file = file
    }

    deinit {
        // The file is removed while the lock is held: another process that has opened it in the meantime finds that the
        // file has lost its name.
        directory.unlink(name.withLock { $0 })
    }

    /// Acquires the lock of this name.
    /// - Parameters:
    ///   - spare: a lock of another name in the directory, which is not needed any more. If possible, it becomes the
    ///     lock of this name: renaming its file takes much less time than removing it and creating another one.
    ///   - pause: called between two attempts. A process that only checks the lock also holds it for a moment.
    /// - Throws: `inUse` if another holder has the lock; `lockUnusable`.
    package static func acquire(
        _ name: FilePath, in directory: PrivateDirectory, reusing spare: StateLock? = nil,
        pause: () -> Void = { SystemClock.pause(nanoseconds: 10_000_000) }
    ) throws(StateError) -> StateLock {
        if let spare, spare.directory.path == directory.path, spare.rename(to: name) { return spare }
        var attempts = 10
        while true {
            let file: FileDescriptor
            do throws(Errno) {
                file = try directory.openFile(name)
                if try file.tryLock() {
                    guard directory.isName(name, of: file) else { continue }
                    try file.truncate(to: 0)
                    try file.write(Array("\(ProcessControl.identifier)\n".utf8), at: 0)
                    return StateLock(directory, name, file)
                }
            } catch {
                throw .lockUnusable(directory.path(of: name), error)
            }
            attempts -= 1
            guard attempts > 0 else { throw .inUse(process: holder(of: file)) }
            pause()
        }
    }

    /// Gives the file another name, unless a file with that name exists. A process that waits for the lock of the
    /// earlier name finds that the file has lost that name.
    private func rename(to new: FilePath) -> Bool {
        name.withLock { name in
            if name == new { return true }
            guard (try? directory.rename(name, toUnused: new)) != nil else { return false }
            name = new
            return true
        }
    }

    /// Returns whether a process holds the lock of this name, and the ID of that process.
    package static func holder(of name: FilePath, in directory: PrivateDirectory) -> (isHeld: Bool, process: Int32?) {
        guard let file = directory.openExistingLock(name), (try? file.isLockedElsewhere()) == true else {
            return (false, nil)
        }
        return (true, holder(of: file))
    }

    private static func holder(of file: FileDescriptor) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = bytes.withUnsafeMutableBytes { (try? file.read(into: $0, at: 0)) ?? 0 }
        return Int32(
            String(decoding: bytes.prefix(count), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// The reason why the directory of a store, or a file in it, cannot be used.
package enum StateError: Error, Sendable {
    /// The directory cannot be opened or created.
    case directoryUnusable(FilePath, Errno)
    /// The directory belongs to another user, or other users can write to it.
    case directoryNotPrivate(FilePath)
    /// The lock file at the path cannot be used.
    case lockUnusable(FilePath, Errno)
    /// The file at the path cannot be read, or other users could have written it.
    case fileUnusable(FilePath, reason: String)
    /// The file at the path does not contain a state of a supported version.
    case damaged(FilePath, reason: String)
    /// A process is running the transfer. The associated value is its ID, if that is known.
    case inUse(process: Int32?)
}

extension TransferError {
    init(_ error: StateError) {
        switch error {
        case .directoryUnusable(let path, let reason):
            self.init(.storageUnusable, "The directory \(path) for transfers cannot be used.", underlying: reason)
        case .directoryNotPrivate(let path):
            self.init(
                .storageUnusable,
                "The directory \(path) for transfers must belong to you and not be writable by others."
            )
        case .lockUnusable(let path, let reason):
            self.init(.storageUnusable, "The lock \(path) cannot be used.", underlying: reason)
        case .fileUnusable(let path, let reason), .damaged(let path, let reason):
            self.init(.resumeDataInvalid, "The state file \(path) \(reason).")
        case .inUse(let process):
            let who = process.map { "Process \($0)" } ?? "Another process"
            self.init(.inUse, "\(who) is already running this transfer.")
        }
    }
}

/// A value of JSON. It stores the members of an object that this version does not support.
enum JSONValue: Sendable, Hashable {
    case null
    case truth(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .truth(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .truth(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}
