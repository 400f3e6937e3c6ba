import Foundation

/// The scenarios of the client mode, in the order of the report.
enum ClientSuite {
    static func scenarios(seed: UInt64) -> [Scenario] {
        let all =
            CreationScenarios.all + ResumptionScenarios.all(seed: seed) + OffsetScenarios.all + RefusalScenarios.all
            + LocationScenarios.all + DownloadScenarios.all(seed: seed)
        let sections = Set(all.map(\.question.group)).sorted { $0.compare($1, options: .numeric) == .orderedAscending }
        return sections.flatMap { section in all.filter { $0.question.group == section } }
    }

    /// Everything that the client mode asks.
    static var questions: [Question] { scenarios(seed: 1).map(\.question) + ClientRules.questions.map(\.1) }
}
