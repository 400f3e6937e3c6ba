import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// The client of this package, judged as its executable.
@Suite("onward put and get", .timeLimit(.minutes(15)), .serialized)
struct OnwardClientTests {
    @Test("The client meets every MUST and every SHOULD of the client mode")
    func everything() async throws {
        let report = try await Self.judge("")
        Self.expectConformance(report)
        #expect(report.count("pass") > 115)
    }

    @Test("So it does in parts, without content in the creation, and with a digest")
    func parts() async throws {
        let report = try await Self.judge(
            "--careful --append-size 60000 --digest", only: ["4.*", "5/*", "8/*", "9651/*", "10/*"])
        Self.expectConformance(report)
        #expect(report.results.contains { $0.subject.id == "10/mismatch" && $0.outcome == .pass })
    }

    private static func expectConformance(_ report: ClientReport) {
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default:
                let proof = result.transcript.map(TranscriptText.lines).joined()
                Issue.record("\(result.subject.id): \(result.outcome)\n\(proof)")
            }
        }
    }

    private static func judge(_ uploadOptions: String, only: [String] = []) async throws -> ClientReport {
        // Patience for slow machines: what falls silent is seldom, and several scenarios go on at once.
        let options = "--retries 2 --stall-timeout 5s --quiet --header 'Authorization: Bearer judged'"
        let executable = try OnwardServerTests.executable()
        return try await onThread {
            var settings = ClientSettings()
            settings.uploadCommand =
                "XDG_STATE_HOME={state} exec \(executable) put \(options) \(uploadOptions) {file} {url}"
            settings.downloadCommand = "XDG_STATE_HOME={state} exec \(executable) get \(options) {url} -o {file}"
            settings.only = only
            settings.timeout = .seconds(300)
            settings.jobs = 8
            return try ClientRun(settings).run()
        }
    }
}
