import Foundation
import Glibc
import SystemCalls

/// A lock that is held while a command runs, so that the same command does not run twice at the same time. The lock
/// ends with the process, however the process ends.
final class CommandLock: Sendable {
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
        directory.unlinkLock(name)
    }

    /// How an attempt ended.
    enum Attempt {
        case acquired(CommandLock)
        /// The ID of the process that holds the lock, if it is known.
        case held(by: Int32?)
    }

    /// - Parameter pause: called between two attempts. A process that only checks the lock also holds it for a moment.
    static func acquire(
        _ name: FilePath, in directory: PrivateDirectory,
        pause: () -> Void = { SystemClock.pause(nanoseconds: 10_000_000) }
    ) throws(CommandFailure) -> Attempt {
        var attempts = 10
        do throws(Errno) {
            while true {
                let file = try directory.openLock(name)
                guard try file.tryLock() else {
                    attempts -= 1
                    guard attempts > 0 else { return .held(by: holder(of: file)) }
                    pause()
                    continue
                }
                guard directory.isNamed(file, name) else { continue }
                try file.truncate(to: 0)
                try file.write(Array("\(getpid())\n".utf8), at: 0)
                return .acquired(CommandLock(directory, name, file))
            }
        } catch {
            throw CommandFailure(
                .inputOutput, "state-directory", "the lock \(directory.path(of: name)) cannot be used: \(error)")
        }
    }

    /// Returns whether a process holds the lock of this name, and the ID of that process.
    static func holder(of name: FilePath, in directory: PrivateDirectory) -> (isHeld: Bool, process: Int32?) {
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
