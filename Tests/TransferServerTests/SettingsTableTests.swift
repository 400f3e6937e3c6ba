import ResumableUpload
import TestSupport
import Testing
import TransferServer
import UploadStorage

@Suite("Settings of the server in the documentation")
struct SettingsTableTests {
    @Test("docs/library-settings.md has every setting of ServerConfiguration with its default")
    func server() throws {
        let configuration = ServerConfiguration()
        let table = try SettingsTable(of: "ServerConfiguration")
        let differences = table.differences(
            from: configuration, inWords: ["listeners", "ownPrefix", "limits", "cacheControl", "logSink"])
        #expect(differences == [])
        #expect(configuration.listeners.map(\.description) == [table.defaults["listeners"]])
        #expect(configuration.limits == UploadLimits(maxAge: 7 * 86_400))
        #expect(configuration.ownPrefix.isEmpty && configuration.cacheControl == .noCache)
        #expect("\(configuration.logSink)" == "\(LogSink.none)")
    }

    @Test("docs/library-settings.md has every setting of StoreConfiguration with its default")
    func store() throws {
        let configuration = StoreConfiguration()
        let differences = try SettingsTable(of: "StoreConfiguration").differences(
            from: configuration,
            names: ["clock": nil, "sharedStatistics": nil, "interruption": nil, "acquisitionWait": nil],
            inWords: ["interruptedResponse", "validated"])
        #expect(differences == [])
        #expect(configuration.interruptedResponse.status == 500)
    }
}
