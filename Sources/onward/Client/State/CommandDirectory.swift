import ResumableTransfer
import SystemCalls

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
