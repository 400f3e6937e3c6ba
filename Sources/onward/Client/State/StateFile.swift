import Foundation
import Glibc
import ResumableTransfer
import SystemCalls

/// The state of one command, locked by the process that runs it for as long as this object exists.
final class StateFile: Sendable {
    /// The end of the names of files in the directory for states.
    static let suffix = ".state"
    private static let lockSuffix = ".lock"

    let identity: TransferIdentity
    /// The operand for `onward resume` and `onward cancel`: the name of the state, or its path if the user chose one.
    let reference: FilePath
    /// Whether the user chose the path of the file.
    var isChosen: Bool { reference.isAbsolute }
    private let directory: PrivateDirectory
    private let fileName: FilePath
    private let locks: [CommandLock]
    private let failure = Monitor<Errno?>(nil)
    private let saved = Monitor<Int64?>(nil)

    private init(
        _ identity: TransferIdentity, _ reference: FilePath, _ directory: PrivateDirectory, _ fileName: FilePath,
        _ locks: [CommandLock]
    ) {
        self.identity = identity
        self.reference = reference
        self.directory = directory
        self.fileName = fileName
        self.locks = locks
    }

    /// Creates or opens the state of a command, and locks it.
    /// - Parameter chosen: the absolute path of the state file, if the user chose it.
    /// - Throws: a failure with status 75 if the same command is already running.
    static func claim(_ identity: TransferIdentity, chosen: FilePath?) throws(CommandFailure) -> StateFile {
        let name = identity.name
        var locks: [CommandLock] = []
        guard let chosen else {
            let states = try PrivateDirectory.states()
            locks.append(try lock(FilePath(name + lockSuffix), in: states, identity))
            return StateFile(identity, FilePath(name), states, FilePath(name + suffix), locks)
        }
        // This lock also excludes the same command with a state file in another place.
        do throws(CommandFailure) {
            locks.append(try lock(FilePath(name + lockSuffix), in: try PrivateDirectory.states(), identity))
        } catch {
            if error.status == .tryAgain { throw error }
        }
        let fileName = chosen.lastComponent
        let directory = try PrivateDirectory.of(chosen)
        locks.append(try lock("." + fileName + FilePath(lockSuffix), in: directory, identity))
        return StateFile(identity, chosen, directory, fileName, locks)
    }

    /// Returns whether the directory for states contains a state of the command.
    static func exists(of identity: TransferIdentity) -> Bool {
        PrivateDirectory.existingStates()?.contains(FilePath(identity.name + suffix)) ?? false
    }

    private static func lock(
        _ name: FilePath, in directory: PrivateDirectory, _ identity: TransferIdentity
    ) throws(CommandFailure) -> CommandLock {
        switch try CommandLock.acquire(name, in: directory) {
        case .acquired(let lock): return lock
        case .held(let process):
            let who = process.map { "process \($0)" } ?? "another process"
            throw CommandFailure(.tryAgain, "in-use", "\(who) is already running \(StateFile.subject(of: identity))")
        }
    }

    static func subject(of identity: TransferIdentity) -> String {
        let url = TransferURL.shown(identity.url)
        return switch identity.kind {
        case .put: "the upload of \(identity.path) to \(url)"
        case .get: "the download of \(url) to \(identity.path)"
        }
    }

    /// Returns the state that an earlier run saved; `nil` if there is none.
    func load() throws(CommandFailure) -> SavedTransfer? {
        guard let data = try directory.read(fileName) else { return nil }
        let path = directory.path(of: fileName)
        do throws(CommandFailure) {
            let saved = try SavedTransfer.decode(data)
            guard saved.identity == identity else {
                throw CommandFailure(
                    .inputOutput, "state-foreign", "belongs to \(StateFile.subject(of: saved.identity))")
            }
            self.saved.withLock { $0 = saved.resumeData.position }
            return saved
        } catch {
            let advice =
                error.code == "state-foreign"
                ? "Choose another file with --state." : "Start again from the beginning with --restart."
            throw CommandFailure(error.status, error.code, "the state file \(path) \(error.message). \(advice)")
        }
    }

    /// Saves the state for a later run. If that fails, ``saveFailure`` is set, and the transfer continues.
    /// - Parameter sent: the position up to which an upload has sent bytes.
    func save(_ resumeData: ResumeData, options: SavedTransfer.Options, sent: Int64?) {
        let saved = SavedTransfer(
            identity: identity, options: options, sent: sent, savedAt: SystemClock.realtimeSeconds(),
            resumeData: resumeData)
        let data = try? saved.encoded()
        // The lock orders concurrent saves.
        failure.withLock { failure in
            guard let data else {
                failure = .invalidArgument
                return
            }
            do throws(Errno) {
                try directory.replace(fileName, with: data)
                failure = nil
                self.saved.withLock { $0 = resumeData.position }
            } catch {
                failure = error
            }
        }
    }

    /// The position, in bytes, of the state that was read or saved last; `nil` if there is none.
    var savedPosition: Int64? { saved.withLock { $0 } }

    /// The error of the last attempt to save.
    var saveFailure: Errno? { failure.withLock { $0 } }

    func remove() {
        directory.remove(fileName)
        saved.withLock { $0 = nil }
    }

    /// The path of the state file, for messages.
    var path: FilePath { directory.path(of: fileName) }

    /// Returns whether a process uses the state with this name now, and the ID of that process.
    static func holder(of name: String, in states: PrivateDirectory) -> (isHeld: Bool, process: Int32?) {
        CommandLock.holder(of: FilePath(name + lockSuffix), in: states)
    }
}
