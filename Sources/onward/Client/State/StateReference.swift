import ResumableTransfer
import SystemCalls

/// The state that a user selects with an operand, which is the name of the state or the path of its file.
struct StateReference: Sendable {
    let directory: PrivateDirectory
    let fileName: FilePath
    /// The absolute path of a state that is not in the directory for states; `nil` for all others.
    let chosen: FilePath?
    /// The text that messages show: the name of the state without its suffix, or the path of its file.
    let shown: FilePath

    /// Finds the state whose name or path is `path`.
    /// - Throws: a failure with status 66 if there is no such state.
    static func find(_ path: FilePath) throws(CommandFailure) -> StateReference {
        let missing = CommandFailure(
            .noSource, "no-such-state",
            "there is no state '\(path)'; 'onward status' lists all states except those of --state"
        )
        let states = PrivateDirectory.existingStates()
        if path.lastComponent == path, let states, let found = try find(path, in: states) { return found }
        guard let path = path.absolute else { throw missing }
        let directory = try PrivateDirectory.of(path)
        let name = path.lastComponent
        guard try exists(name, in: directory) else { throw missing }
        if let states, states.path.absolute == directory.path, name.hasSuffix(StateFile.suffix) {
            return StateReference(states, name.withoutStateSuffix)
        }
        return StateReference(directory: directory, fileName: name, chosen: path, shown: path)
    }

    private static func find(
        _ name: FilePath, in states: PrivateDirectory
    ) throws(CommandFailure) -> StateReference? {
        let found = StateReference(states, name)
        return try exists(found.fileName, in: states) ? found : nil
    }

    /// - Throws: a failure if the file cannot be read, or must not be trusted.
    private static func exists(_ name: FilePath, in directory: PrivateDirectory) throws(CommandFailure) -> Bool {
        do throws(StateError) { return try directory.read(name) != nil } catch { throw CommandFailure(error) }
    }

    /// All states in the directory for states. There are none if the directory does not exist.
    /// - Throws: a failure with status 74 if the directory cannot be read.
    static func all() throws(CommandFailure) -> [StateReference] {
        let path = PrivateDirectory.statePath
        do throws(StateError) {
            let states = try PrivateDirectory.open(path)
            let names: [String]
            do throws(Errno) {
                names = try states.readNames()
            } catch {
                throw StateError.directoryUnusable(path, error)
            }
            return states.stems(in: names).map { StateReference(states, $0) }
        } catch {
            if case .directoryUnusable(_, let reason) = error, reason == .noSuchFile { return [] }
            throw CommandFailure(error)
        }
    }

    private init(_ states: PrivateDirectory, _ name: FilePath) {
        self.init(directory: states, fileName: name + StateFile.suffix, chosen: nil, shown: name)
    }

    private init(directory: PrivateDirectory, fileName: FilePath, chosen: FilePath?, shown: FilePath) {
        self.directory = directory
        self.fileName = fileName
        self.chosen = chosen
        self.shown = shown
    }

    /// The content of the state file; `nil` if the file no longer exists.
    func load() throws(CommandFailure) -> SavedTransfer? {
        let path = directory.path(of: fileName)
        do throws(StateError) {
            guard let data = try directory.read(fileName) else { return nil }
            return try SavedTransfer.decode(data, from: path)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Returns whether a process uses the state now, and the ID of that process.
    var holder: (isHeld: Bool, process: Int32?) { StateLock.holder(of: shown + StateFile.lockSuffix, in: directory) }

    /// Locks the state.
    func claim() throws(CommandFailure) -> CommandState {
        guard let saved = try load() else {
            throw CommandFailure(.noSource, "no-such-state", "the state '\(shown)' no longer exists")
        }
        return try CommandState.claim(saved.identity, chosen: chosen)
    }
}

extension FilePath {
    fileprivate var withoutStateSuffix: FilePath { FilePath(bytes.dropLast(StateFile.suffix.bytes.count)) }
}
