import ResumableTransfer
import SystemCalls

/// The state of one command, locked by the process that runs it for as long as this object exists.
final class CommandState: Sendable {
    let identity: TransferIdentity
    /// The operand for `onward resume` and `onward cancel`: the name of the state, or its path if the user chose one.
    let reference: FilePath
    /// Whether the user chose the path of the file.
    var isChosen: Bool { reference.isAbsolute }
    private let file: StateFile

    private init(_ identity: TransferIdentity, _ reference: FilePath, _ file: StateFile) {
        self.identity = identity
        self.reference = reference
        self.file = file
    }

    /// Creates or opens the state of a command, and locks it.
    /// - Parameter chosen: the absolute path of the state file, if the user chose it.
    /// - Throws: a failure with status 75 if the same command is already running.
    static func claim(_ identity: TransferIdentity, chosen: FilePath?) throws(CommandFailure) -> CommandState {
        let name = FilePath(identity.name)
        guard let chosen else {
            let states = try PrivateDirectory.states()
            let lock = try lock(name + StateFile.lockSuffix, in: states, identity)
            return CommandState(identity, name, StateFile(name + StateFile.suffix, in: states, locks: [lock]))
        }
        var locks: [StateLock] = []
        // This lock also excludes the same command with a state file in another place.
        do throws(CommandFailure) {
            locks.append(try lock(name + StateFile.lockSuffix, in: try PrivateDirectory.states(), identity))
        } catch {
            if error.status == .tryAgain { throw error }
        }
        let fileName = chosen.lastComponent
        let directory = try PrivateDirectory.of(chosen)
        locks.append(try lock("." + fileName + StateFile.lockSuffix, in: directory, identity))
        return CommandState(identity, chosen, StateFile(fileName, in: directory, locks: locks))
    }

    /// Returns whether the directory for states contains a state of the command.
    static func exists(of identity: TransferIdentity) -> Bool {
        PrivateDirectory.existingStates()?.contains(FilePath(identity.name) + StateFile.suffix) ?? false
    }

    private static func lock(
        _ name: FilePath, in directory: PrivateDirectory, _ identity: TransferIdentity
    ) throws(CommandFailure) -> StateLock {
        do throws(StateError) {
            return try StateLock.acquire(name, in: directory)
        } catch {
            guard case .inUse(let process) = error else { throw CommandFailure(error) }
            let who = process.map { "process \($0)" } ?? "another process"
            throw CommandFailure(.tryAgain, "in-use", "\(who) is already running \(subject(of: identity))")
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
        let saved: SavedTransfer
        do throws(StateError) {
            guard let stored = try file.load() else { return nil }
            saved = try SavedTransfer(stored, from: path)
        } catch {
            guard case .damaged(_, let reason) = error else { throw CommandFailure(error) }
            throw CommandFailure(
                .inputOutput, "state-damaged",
                "the state file \(path) \(reason). Start again from the beginning with --restart.")
        }
        guard saved.identity == identity else {
            throw CommandFailure(
                .inputOutput, "state-foreign",
                "the state file \(path) belongs to \(CommandState.subject(of: saved.identity))."
                    + " Choose another file with --state.")
        }
        return saved
    }

    /// Saves the state for a later run. If that fails, ``saveFailure`` is set, and the transfer continues.
    /// - Parameter sent: the position up to which an upload has sent bytes.
    func save(_ resumeData: ResumeData, options: SavedTransfer.Options, sent: Int64?) {
        let saved = SavedTransfer(
            identity: identity, options: options, sent: sent, savedAt: SystemClock.realtimeSeconds(),
            resumeData: resumeData)
        file.save(saved.stored)
    }

    /// The position, in bytes, of the state that was read or saved last; `nil` if there is none.
    var savedPosition: Int64? { file.savedPosition }

    /// The error of the last attempt to save.
    var saveFailure: Errno? { file.saveFailure }

    func remove() { file.remove() }

    /// The path of the state file, for messages.
    var path: FilePath { file.path }
}
