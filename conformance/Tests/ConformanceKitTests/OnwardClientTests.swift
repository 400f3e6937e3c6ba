import Glibc
import SystemCalls
import Testing

@testable import ConformanceKit

/// The client of this package, judged as its executable.
@Suite("onward put and get", .timeLimit(.minutes(15)), .serialized)
struct OnwardClientTests {
    @Test("The client meets every MUST and every SHOULD of the client mode")
    func everything() async throws {
        let options = "--retries 4 --stall-timeout 2s --quiet --header 'Authorization: Bearer judged'"
        let executable = try OnwardServerTests.executable()
        let report = try await onThread {
            var settings = ClientSettings()
            settings.uploadCommand =
                "XDG_STATE_HOME={state} exec \(executable) put \(options) {file} {url}"
            settings.downloadCommand =
                "XDG_STATE_HOME={state} exec \(executable) get \(options) {url} -o {file}"
            return try ClientRun(settings).run()
        }
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default:
                let proof = result.transcript.map(TranscriptText.lines).joined()
                Issue.record("\(result.subject.id): \(result.outcome)\n\(proof)")
            }
        }
        #expect(report.count("pass") > 80)
    }
}
