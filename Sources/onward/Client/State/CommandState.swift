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
    /// The lists of files that were sent, including the list of this command if it has several files.
    private let lists: SentFilesLists?
    /// Whether the state is in the list of the command.
    private let isListed = Monitor(false)

    private init(_ identity: TransferIdentity, _ reference: FilePath, _ file: StateFile, _ lists: SentFilesLists?) {
        self.identity = identity
        self.reference = reference
        self.file = file
        self.lists = lists
    }

    /// Creates or opens the state of a command, and locks it.
    /// - Parameters:
    ///   - chosen: the absolute path of the state file, if the user chose it.
    ///   - lists: saves the first state of an upload, if its command has several files.
    ///   - spare: a lock that ``release()`` has returned.
    /// - Throws: a failure with status 75 if the same command is already running.
    static func claim(
        _ identity: TransferIdentity, chosen: FilePath?, lists: SentFilesLists? = nil, reusing spare: StateLock? = nil
    ) throws(CommandFailure) -> CommandState {
        let name = FilePath(identity.name)
        guard let chosen else {
            let states = if let lists { try lists.directory() } else { try PrivateDirectory.states() }
            let lock = try lock(name + StateFile.lockSuffix, in: states, identity, reusing: spare)
            return CommandState(identity, name, StateFile(name + StateFile.suffix, in: states, locks: [lock]), lists)
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
        return CommandState(identity, chosen, StateFile(fileName, in: directory, locks: locks), lists)
    }

    /// Returns whether the directory for states contains a state or a lock of the command.
    static func exists(of identity: TransferIdentity) -> Bool {
        guard let states = PrivateDirectory.existingStates() else { return false }
        let name = FilePath(identity.name)
        return states.contains(name + StateFile.suffix) || states.contains(name + StateFile.lockSuffix)
    }

    private static func lock(
        _ name: FilePath, in directory: PrivateDirectory, _ identity: TransferIdentity, reusing spare: StateLock? = nil
    ) throws(CommandFailure) -> StateLock {
        do throws(StateError) {
            return try StateLock.acquire(name, in: directory, reusing: spare)
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
    ///
    /// A command with several files saves the first state of an upload in its list, because writing state
    /// files for many short uploads would take longer than the uploads.
    /// - Parameter sent: the position up to which an upload has sent bytes.
    func save(_ resumeData: ResumeData, options: SavedTransfer.Options, sent: Int64?) async {
        if let lists, file.savedPosition == nil, !isListed.withLock({ $0 }) {
            let saved = SavedTransfer(
                identity: identity, options: options, sent: sent, savedAt: SystemClock.realtimeSeconds(),
                resumeData: resumeData)
            if (try? await lists.addBegun(saved)) != nil { return isListed.withLock { $0 = true } }
        }
        await file.save(resumeData, sent: sent) { [identity] in $0.setCommand(identity, options) }
        if file.saveFailure == nil { await removeFromList() }
    }

    /// Writes a state file with this state, unless there is a state file.
    /// - Returns: whether there is a state file now.
    func restore(_ saved: SavedTransfer) -> Bool {
        if (try? file.load()) != nil { return true }
        file.save(saved.stored)
        return file.saveFailure == nil
    }

    private func removeFromList() async {
        let wasListed = isListed.withLock { isListed in
            defer { isListed = false }
            return isListed
        }
        if wasListed { await lists?.removeBegun(identity) }
    }

    /// The position, in bytes, of the state that was read or saved last; `nil` if there is none.
    var savedPosition: Int64? { file.savedPosition }

    /// The error of the last attempt to save.
    var saveFailure: Errno? { file.saveFailure }

    /// Removes the state.
    func remove() async {
        await removeFromList()
        file.remove()
    }

    /// Removes the state of a file that the lists contain as sent. Call ``load()`` before.
    func removeSent() {
        isListed.withLock { $0 = false }
        if file.savedPosition != nil { file.remove() }
    }

    /// Ends the use of the state after the end of the transfer.
    /// - Returns: the lock, which another transfer can use; `nil` if the user chose the state file.
    func release() -> StateLock? {
        let locks = file.release()
        return isChosen ? nil : locks.first
    }

    /// The path of the state file, for messages.
    var path: FilePath { file.path }
}

/// The directories in which commands keep their states.
extension PrivateDirectory {
    /// `$XDG_STATE_HOME/onward`, or `~/.local/state/onward`.
    static var statePath: FilePath { TransferClient.Configuration.defaultStoragePath.directory }

    /// The directory for states, created with mode 0700 if it is missing.
    static func states() throws(CommandFailure) -> PrivateDirectory {
        do throws(StateError) {
            return try create(statePath)
        } catch {
            let reason =
                if case .directoryUnusable(_, let reason) = error {
                    "cannot be used: \(reason.text)"
                } else {
                    "must be owned by you and not writable by others"
                }
            throw CommandFailure(
                .inputOutput, "state-directory",
                """
                the directory \(statePath) for states \(reason)
                Set XDG_STATE_HOME to use another directory for all states, or use put or get with --state FILE.
                """)
        }
    }

    /// The directory for states if it exists. It is not created.
    static func existingStates() -> PrivateDirectory? { try? open(statePath) }

    /// The directory of a state file that the user names.
    static func of(_ file: FilePath) throws(CommandFailure) -> PrivateDirectory {
        do throws(StateError) { return try open(file.directory) } catch { throw CommandFailure(error) }
    }
}

extension CommandFailure {
    init(_ error: StateError) {
        switch error {
        case .directoryUnusable(let path, let reason):
            self.init(
                .inputOutput, "state-directory",
                "the directory \(path) cannot be used: \(reason.text)")
        case .directoryNotPrivate(let path):
            self.init(
                .inputOutput, "state-directory",
                "the directory \(path) must be owned by you and not writable by others")
        case .lockUnusable(let path, let reason):
            self.init(.inputOutput, "state-directory", "the lock \(path) cannot be used: \(reason)")
        case .fileUnusable(let path, let reason):
            self.init(.inputOutput, "state-unusable", "the state file \(path) \(reason)")
        case .damaged(let path, let reason):
            self.init(
                .inputOutput, "state-damaged",
                "the state file \(path) \(reason). Remove it if you do not need it.")
        case .inUse(let process):
            let who = process.map { "process \($0)" } ?? "another process"
            self.init(.tryAgain, "in-use", "\(who) is already running this transfer")
        }
    }
}
