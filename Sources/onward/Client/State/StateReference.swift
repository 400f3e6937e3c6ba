import ResumableTransfer
import SystemCalls

/// The state that an operand of a command names, by the state's name or by its path.
struct StateReference: Sendable {
    let directory: PrivateDirectory
    let fileName: FilePath
    /// The path, if the state is not in the directory for states.
    let chosen: FilePath?
    /// The name without the suffix, or the path.
    let shown: FilePath

    /// Finds the state that `path` names.
    /// - Throws: a failure with status 66 if there is no such state.
    static func find(_ path: FilePath) throws(CommandFailure) -> StateReference {
        let missing = CommandFailure(
            .noSource, "no-such-state", "there is no state '\(path)'; 'onward status' lists all states"
        )
        let states = PrivateDirectory.existingStates()
        if path.lastComponent == path, let states, let found = try among(states, path) { return found }
        guard let path = path.absolute else { throw missing }
        let directory = try PrivateDirectory.of(path)
        let name = path.lastComponent
        guard try directory.read(name) != nil else { throw missing }
        if let states, states.path.absolute == directory.path, name.hasSuffix(FilePath(StateFile.suffix)) {
            return StateReference(states, name.withoutStateSuffix)
        }
        return StateReference(directory: directory, fileName: name, chosen: path, shown: path)
    }

    private static func among(_ states: PrivateDirectory, _ name: FilePath) throws(CommandFailure) -> StateReference? {
        let found = StateReference(states, name)
        return try states.read(found.fileName) == nil ? nil : found
    }

    /// All states in the directory for states.
    static func all() -> [StateReference] {
        guard let states = PrivateDirectory.existingStates() else { return [] }
        return states.names().map { FilePath($0) }
            .filter { $0.hasSuffix(FilePath(StateFile.suffix)) && $0.bytes.first != UInt8(ascii: ".") }
            .map { StateReference(states, $0.withoutStateSuffix) }
    }

    private init(_ states: PrivateDirectory, _ name: FilePath) {
        self.init(directory: states, fileName: name + FilePath(StateFile.suffix), chosen: nil, shown: name)
    }

    private init(directory: PrivateDirectory, fileName: FilePath, chosen: FilePath?, shown: FilePath) {
        self.directory = directory
        self.fileName = fileName
        self.chosen = chosen
        self.shown = shown
    }

    /// The content of the state file; `nil` if the file no longer exists.
    func load() throws(CommandFailure) -> SavedTransfer? {
        guard let data = try directory.read(fileName) else { return nil }
        do throws(CommandFailure) {
            return try SavedTransfer.decode(data)
        } catch {
            let path = directory.path(of: fileName)
            throw CommandFailure(
                error.status, error.code, "the state file \(path) \(error.message). Remove it if you do not need it.")
        }
    }

    /// Locks the state.
    func claim() throws(CommandFailure) -> StateFile {
        guard let saved = try load() else {
            throw CommandFailure(.noSource, "no-such-state", "the state '\(shown)' no longer exists")
        }
        return try StateFile.claim(saved.identity, chosen: chosen)
    }
}

extension FilePath {
    fileprivate var withoutStateSuffix: FilePath { FilePath(bytes.dropLast(StateFile.suffix.utf8.count)) }
}
