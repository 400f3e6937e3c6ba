import Foundation
import SystemCalls

/// A lock that is held while a transfer runs, so that only one process at a time runs it. The lock ends with the
/// process, however the process ends.
package final class StateLock: Sendable {
    private let directory: PrivateDirectory
    private let name: FilePath
    private let file: FileDescriptor

    private init(_ directory: PrivateDirectory, _ name: FilePath, _ file: FileDescriptor) {
        self.directory = directory
        self.name = name
        self.file = file
    }

    deinit {
        // The file is removed while the lock is held: another process that has opened it in the meantime finds that the
        // file has lost its name.
        directory.unlink(name)
    }

    /// Acquires the lock of this name.
    /// - Parameter pause: called between two attempts. A process that only checks the lock also holds it for a moment.
    /// - Throws: `inUse` if another holder has the lock; `lockUnusable`.
    package static func acquire(
        _ name: FilePath, in directory: PrivateDirectory,
        pause: () -> Void = { SystemClock.pause(nanoseconds: 10_000_000) }
    ) throws(StateError) -> StateLock {
        var attempts = 10
        while true {
            let file: FileDescriptor
            do throws(Errno) {
                file = try directory.openLock(name)
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
