/// One situation that a client is put into: how the server behaves, and what the client should have made of it.
struct Scenario: Sendable {
    enum Direction: Sendable {
        case upload
        case download
    }

    /// What the command is run again for after it ended with the status that asks for it, or was killed.
    enum Interlude: Sendable {
        case none
        /// The file gets other bytes of the same size before the next run.
        case changesFile
    }

    let question: Question
    let direction: Direction
    /// Bytes of the representation.
    let size: Int64
    var interlude = Interlude.none
    /// How the server differs from a good one: gets a request and the good reaction to it.
    let script: @Sendable (ScriptedRequest, inout Stage, inout Reaction) -> Void
    /// - Throws: ``Unmet`` or ``NotOffered``.
    let verify: @Sendable (ScenarioRecord) throws -> Void

    static let usualSize: Int64 = 300_000

    static func upload(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        size: Int64 = usualSize, interlude: Interlude = .none,
        script: @escaping @Sendable (ScriptedRequest, inout Stage, inout Reaction) -> Void = { _, _, _ in },
        verify: @escaping @Sendable (ScenarioRecord) throws -> Void
    ) -> Scenario {
        Scenario(
            question: Question(id, level, section, requirement, covers: covers), direction: .upload, size: size,
            interlude: interlude, script: script, verify: verify)
    }

    static func download(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        size: Int64 = usualSize,
        script: @escaping @Sendable (ScriptedRequest, inout Stage, inout Reaction) -> Void = { _, _, _ in },
        verify: @escaping @Sendable (ScenarioRecord) throws -> Void
    ) -> Scenario {
        Scenario(
            question: Question(id, level, section, requirement, covers: covers), direction: .download, size: size,
            script: script, verify: verify)
    }
}
