import ResumableTransfer

/// A state that a command names: by its name, or by its path.
struct StateReference: Sendable {
    let directory: PrivateDirectory
    let fileName: String
    /// The path, where it does not lie among the other states.
    let chosen: String?
    let shown: String

    /// Finds the state that `text` names.
    /// - Throws: 66 where there is none.
    static func find(_ text: String) throws(CommandFailure) -> StateReference {
        let missing = CommandFailure(
            .noSource, "no-such-state", "there is no state '\(DisplayText.printable(text))'; 'onward status' lists them"
        )
        let states = PrivateDirectory.existingStates()
        if !text.contains("/"), let states, let found = try among(states, text) { return found }
        guard let path = AbsolutePath.of(text) else { throw missing }
        let directory = try PrivateDirectory.of(path)
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        guard try directory.read(name) != nil else { throw missing }
        if let states, AbsolutePath.of(states.path) == directory.path, name.hasSuffix(StateFile.suffix) {
            return StateReference(states, String(name.dropLast(StateFile.suffix.count)))
        }
        return StateReference(directory: directory, fileName: name, chosen: path, shown: path)
    }

    private static func among(_ states: PrivateDirectory, _ text: String) throws(CommandFailure) -> StateReference? {
        let found = StateReference(states, text)
        return try states.read(found.fileName) == nil ? nil : found
    }

    /// All that lie in the directory for states.
    static func all() -> [StateReference] {
        guard let states = PrivateDirectory.existingStates() else { return [] }
        return states.names().filter { $0.hasSuffix(StateFile.suffix) && !$0.hasPrefix(".") }
            .map { StateReference(states, String($0.dropLast(StateFile.suffix.count))) }
    }

    private init(_ states: PrivateDirectory, _ name: String) {
        self.init(directory: states, fileName: name + StateFile.suffix, chosen: nil, shown: name)
    }

    private init(directory: PrivateDirectory, fileName: String, chosen: String?, shown: String) {
        self.directory = directory
        self.fileName = fileName
        self.chosen = chosen
        self.shown = shown
    }

    /// What it says; `nil` where it is gone by now.
    func load() throws(CommandFailure) -> (saved: SavedTransfer, resumeData: ResumeData)? {
        guard let data = try directory.read(fileName) else { return nil }
        do throws(CommandFailure) {
            return try SavedTransfer.decode(data)
        } catch {
            let path = directory.path(of: fileName)
            throw CommandFailure(
                error.status, error.code, "the state file \(path) \(error.message). Remove it, if it is of no use.")
        }
    }

    /// Takes it, so that nobody else does.
    func claim() throws(CommandFailure) -> StateFile {
        guard let (saved, _) = try load() else {
            throw CommandFailure(.noSource, "no-such-state", "there is no state '\(shown)' any more")
        }
        return try StateFile.claim(saved.identity, chosen: chosen)
    }
}
