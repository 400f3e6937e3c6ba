import Testing

@testable import ConformanceKit

/// The client mode is judged itself: by a client that does everything rightly, and by the same with one defect at a time.
@Suite("Reference client", .timeLimit(.minutes(15)))
struct ReferenceClientTests {
    @Test("A client without a defect passes everything that it is asked")
    func unbroken() async throws {
        let report = try await Self.run(nil)
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default:
                let proof = result.transcript.map(TranscriptText.lines).joined()
                Issue.record("\(result.subject.id): \(result.outcome)\n\(proof)")
            }
        }
        #expect(report.exitStatus(strict: true) == 0)
        #expect(report.count("pass") > 80)
        let cost = try #require(report.traffic["4.3/cut"])
        #expect(cost.transferred == cost.size && cost.recoveryMilliseconds != nil)
    }

    @Test("Each defect is noticed", arguments: ClientDefect.allCases)
    func broken(_ defect: ClientDefect) async throws {
        let report = try await Self.run(defect, only: [defect.caughtBy] + defect.occasions)
        let result = try #require(report.results.first { $0.subject.id == defect.caughtBy })
        switch result.outcome {
        case .fail: #expect(result.subject.level == .must && report.exitStatus(strict: false) == 1)
        case .warn: #expect(result.subject.level != .must && report.exitStatus(strict: true) == 1)
        default: Issue.record("\(defect): \(result.outcome)")
        }
        #expect(!result.transcript.isEmpty)
    }

    @Test("A client that does nothing cannot be judged")
    func idle() async throws {
        let report = try await onThread {
            var settings = ClientSettings()
            settings.uploadCommand = "exit 0; : {file} {url}"
            settings.only = ["4.2/whole"]
            return try ClientRun(settings).run()
        }
        #expect(report.exitStatus(strict: false) == 2)
    }

    private static func run(_ defect: ClientDefect?, only: [String] = []) async throws -> ClientReport {
        try await onThread {
            var settings = ClientSettings()
            settings.only = only
            if defect == .retriesForEver { settings.timeout = .seconds(10) }
            return ClientRun(settings, candidate: ReferenceClient(defect)).run()
        }
    }
}
