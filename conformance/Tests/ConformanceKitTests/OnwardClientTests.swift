import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// The client part of the protocol suite: all scenarios of the harness test the client executable of this package.
@Suite("onward put and get", .timeLimit(.minutes(15)))
struct OnwardClientTests {
    /// Options of the client, and the scenarios that run against a client with these options.
    enum Configuration: String, Sendable, CaseIterable {
        case standard
        /// Uploads in parts, without content in the creation, and with a digest.
        case parts

        static let reports = Reports<Self, ClientReport> { try await $0.run() }

        private func run() async throws -> ClientReport {
            // A shorter timeout could end while a process pauses for seconds on a loaded machine. This one costs little
            // time, because few scenarios wait until it ends.
            let options = "--retries 2 --stall-timeout 5s --quiet --header 'Authorization: Bearer test'"
            let executable = try ExecutableLocation.onward()
            let uploadOptions = self == .parts ? "--careful --append-size 60000 --digest" : ""
            return try await onThread {
                var settings = ClientSettings()
                settings.uploadCommand =
                    "XDG_STATE_HOME={state} exec \(executable) put \(options) \(uploadOptions) {file} {url}"
                settings.downloadCommand = "XDG_STATE_HOME={state} exec \(executable) get \(options) {url} -o {file}"
                if self == .parts { settings.only = ["4.*", "5/*", "8/*", "9651/*", "10/*"] }
                settings.timeout = .seconds(300)
                settings.jobs = 8
                return try ClientRun(settings).run()
            }
        }
    }

    /// Scenarios that the standard configuration skips, and the configuration in which each of them has to pass.
    private static let configurations: [String: Configuration] = ["10/mismatch": .parts]

    /// Scenarios that no configuration can pass, with the reason. The test fails if one of them is not skipped.
    private static let skipped: [String: String] = ["5/continue": "the client never sends Expect: 100-continue"]

    private static let ids = ClientSuite.cases.map(\.id)

    @Test("The client passes every scenario", arguments: ids)
    func passes(_ id: String) async throws {
        let report = try await Configuration.reports.report(of: Self.configurations[id] ?? .standard)
        let result = try #require(report.results.first { $0.info.id == id }, "\(report.failure ?? "did not run")")
        if let reason = Self.skipped[id] {
            #expect(result.outcome.word == "skipped", "the scenario has to be skipped: \(reason)")
        } else {
            expectPass(result)
        }
    }

    @Test("The client fails no scenario in any configuration", arguments: Configuration.allCases)
    func configuration(_ configuration: Configuration) async throws {
        let report = try await Configuration.reports.report(of: configuration)
        expectConformance(report)
        #expect(report.count("pass") > 0)
        if configuration == .standard { #expect(report.results.map(\.info.id).sorted() == Self.ids.sorted()) }
    }
}
