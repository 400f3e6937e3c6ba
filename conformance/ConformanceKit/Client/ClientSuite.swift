/// The scenarios of the client mode, in the order of the report.
enum ClientSuite {
    static func scenarios(seed: UInt64) -> [Scenario] {
        CreationScenarios.all + ResumptionScenarios.all(seed: seed) + RefusalScenarios.all + LocationScenarios.all
            + DownloadScenarios.all(seed: seed)
    }

    /// Everything that the client mode asks.
    static var questions: [Question] { scenarios(seed: 1).map(\.question) + ClientRules.questions.map(\.1) }
}
