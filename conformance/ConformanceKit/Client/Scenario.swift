/// A test case for a client: the behavior of the server, and the verification of the client's requests and result.
struct Scenario: Sendable {
    enum Direction: Sendable {
        case upload
        case download
    }

    /// A change between two runs of the command.
    enum Interlude: Sendable {
        case none
        /// The file is overwritten with other bytes of the same size.
        case changesFile
    }

    let info: CaseInfo
    let direction: Direction
    /// The size of the representation in bytes.
    let size: Int64
    var interlude = Interlude.none
    /// Changes the reaction of a correct server to a request.
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
            info: CaseInfo(id, level, section, requirement, covers: covers), direction: .upload, size: size,
            interlude: interlude, script: script, verify: verify)
    }

    static func download(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        size: Int64 = usualSize,
        script: @escaping @Sendable (ScriptedRequest, inout Stage, inout Reaction) -> Void = { _, _, _ in },
        verify: @escaping @Sendable (ScenarioRecord) throws -> Void
    ) -> Scenario {
        Scenario(
            info: CaseInfo(id, level, section, requirement, covers: covers), direction: .download, size: size,
            script: script, verify: verify)
    }
}

/// A random number generator with a reproducible sequence for each seed (Steele, Lea and Flood 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
