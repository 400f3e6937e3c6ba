import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Settings of the client in the documentation")
struct SettingsTableTests {
    @Test("docs/library-settings.md has every setting of TransferClient.Configuration with its default")
    func defaults() throws {
        let configuration = TransferClient.Configuration()
        let table = try SettingsTable(of: "TransferClient.Configuration")
        let differences = table.differences(
            from: configuration,
            names: [
                "caPath": "caFile", "storagePath": "storageDirectory", "shouldIssueTickets": nil, "connectTimeout": nil,
                "internetProtocol": nil,
            ],
            inWords: ["fields", "retry", "storageDirectory"])
        #expect(differences == [])
        #expect(configuration.fields.isEmpty)
        #expect(table.defaults["retry"] == "\(configuration.retry.maxRetriesWithoutProgress) retries")
        #expect(configuration.retry.delays == [0, 1, 2, 4, 8, 15, 30].map { .seconds($0) })
        #expect(configuration.retry.maxRetryAfter == .seconds(600))
    }
}
