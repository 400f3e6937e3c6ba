/// How much a case weighs.
package enum Level: String, Sendable, CaseIterable {
    /// The draft or an RFC under it demands it: missing it fails the run.
    case must
    /// Recommended: missing it is a warning, and a failure with `--strict`.
    case should
    /// Allowed: where it is done it has to be done rightly.
    case may
    /// Reports how the subject behaves, without a verdict.
    case info
}

/// What there is to find out about a subject.
package struct Question: Sendable {
    /// Stable: a section and words such as `4.4/offset-mismatch`.
    package let id: String
    package let level: Level
    /// Where the requirement stands: a section of the draft (`4.4.2`) or of an RFC (`RFC 9112 6.3`).
    package let section: String
    /// One sentence in our own words.
    package let requirement: String
    /// The rows of the table of requirements that it covers.
    package let covers: [String]
    /// Cases without which this one says nothing.
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

/// A question to a server, and how it is asked.
@dynamicMemberLookup
package struct Case: Sendable {
    package let question: Question
    /// The profiles that have this requirement, by ``Profile/rank``.
    let ranks: ClosedRange<Int>
    /// The profile to speak, where it is not the run's base.
    let profile: Profile?
    let body: @Sendable (CaseContext) throws -> Void

    package subscript<Value>(dynamicMember path: KeyPath<Question, Value>) -> Value { question[keyPath: path] }

    /// The same under another ID, and without needs.
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
        question = Question(id, level, section, requirement, covers: covers, needs: needs)
        self.ranks = ranks
        self.profile = profile
        self.body = body
    }
}
