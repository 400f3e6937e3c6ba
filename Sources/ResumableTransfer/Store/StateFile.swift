import SystemCalls

/// The state file of one transfer, locked until ``release()`` is called or this object is released.
package final class StateFile: Sendable {
    /// The ends of the names of files in a directory with states.
    package static let suffix: FilePath = ".state"
    package static let lockSuffix: FilePath = ".lock"

    private struct Saves {
        var position: Int64?
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
        saves.withLock { $0.position = stored.resumeData.position }
        return stored
    }

    /// Saves the state for a later run. If that fails, ``saveFailure`` is set, and the earlier state is kept.
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
                saves = Saves(position: stored.resumeData.position, failure: nil)
            } catch {
                saves.failure = error
            }
        }
    }

    /// The position, in bytes, of the state that was read or saved last; `nil` if there is none.
    package var savedPosition: Int64? { saves.withLock { $0.position } }

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
        saves.withLock { $0.position = nil }
    }

    /// Releases the locks. The file must not be changed afterwards.
    package func release() {
        // Their objects are released outside the monitor.
        _ = locks.withLock { locks in
            defer { locks = [] }
            return locks
        }
    }
}
