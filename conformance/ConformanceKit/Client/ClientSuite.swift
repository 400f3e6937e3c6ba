import Foundation

/// The scenarios of the client mode, in the order of the report.
enum ClientSuite {
    static func scenarios(seed: UInt64) -> [Scenario] {
        let all =
            CreationScenarios.all + ResumptionScenarios.all(seed: seed) + OffsetScenarios.all + RefusalScenarios.all
            + LocationScenarios.all + DownloadScenarios.all(seed: seed)
        let sections = Set(all.map(\.info.group)).sorted { $0.compare($1, options: .numeric) == .orderedAscending }
        return sections.flatMap { section in all.filter { $0.info.group == section } }
    }

    /// The descriptions of all scenarios and rules of the client mode.
    static var cases: [CaseInfo] { scenarios(seed: 1).map(\.info) + ClientRules.cases.map(\.1) }
}
