/// The strength of the requirement that a case tests.
package enum Level: String, Sendable, CaseIterable {
    /// The draft, or an RFC to which the draft refers, requires this behavior. If the behavior is missing, the run
    /// fails.
    case must
    /// The behavior is recommended. If the behavior is missing, the case is a warning, and with `--strict` a failure.
    case should
    /// The behavior is optional. A subject that has it must implement it correctly.
    case may
    /// The case reports how the subject behaves, without a verdict.
    case info
}

/// The description of a case: its ID, and the requirement that it tests.
package struct CaseInfo: Sendable {
    /// A stable ID: a section and words, such as `4.4/offset-mismatch`.
    package let id: String
    package let level: Level
    /// The section that contains the requirement: of the draft (`4.4.2`) or of an RFC (`RFC 9112 6.3`). If only some
    /// versions of the draft have the requirement, the text names them (`draft -01 to -05`).
    package let section: String
    /// The requirement in one sentence, in our own words.
    package let requirement: String
    /// The IDs of the rows in the table of requirements that the case covers.
    package let covers: [String]
    /// The IDs of cases that must pass, because otherwise the result of this case has no meaning.
    package let needs: [String]
    /// The part of the ID before the slash.
    package var group: String { String(id.prefix { $0 != "/" }) }

    init(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        needs: [String] = []
    ) {
        self.id = id
        self.level = level
        self.section = section
        self.requirement = requirement
        self.covers = covers.split(separator: " ").map(String.init)
        self.needs = needs
    }
}

/// A test case for a server.
@dynamicMemberLookup
package struct Case: Sendable {
    package let info: CaseInfo
    /// The profiles to which this requirement applies, by ``Profile/rank``.
    let ranks: ClosedRange<Int>
    /// The profile that requests of the case use; `nil` for the base profile of the run.
    let profile: Profile?
    let body: @Sendable (CaseContext) throws -> Void

    package subscript<Value>(dynamicMember path: KeyPath<CaseInfo, Value>) -> Value { info[keyPath: path] }

    /// A copy of the case with another ID, and without ``CaseInfo/needs``.
    func renamed(_ id: String) -> Case {
        Case(
            id, self.level, self.section, self.requirement, covers: self.covers.joined(separator: " "), ranks: ranks,
            profile: profile, body
        )
    }

    init(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        needs: [String] = [], ranks: ClosedRange<Int> = Profile.allRanks, profile: Profile? = nil,
        _ body: @escaping @Sendable (CaseContext) throws -> Void
    ) {
        info = CaseInfo(id, level, section, requirement, covers: covers, needs: needs)
        self.ranks = ranks
        self.profile = profile
        self.body = body
    }
}
