import TestSupport
import Testing

@testable import ConformanceKit

/// Tests of the server mode, with a server without defects and with a server for each defect.
@Suite("Reference server", .timeLimit(.minutes(15)))
struct ReferenceServerTests {
    @Test("A server without a defect passes all cases")
    func unbroken() async throws {
        let report = try await Self.run(nil)
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default: Issue.record("\(result.info.id): \(result.outcome)")
            }
        }
        #expect(report.exitStatus(strict: true) == 0)
        #expect(report.supportedProfiles.count == 6)
        #expect(report.count("pass") > 300)
    }

    @Test("The cases about limits pass if the limits have testable values")
    func limited() async throws {
        let limits = [
            ("max-size", Int64(100_000)), ("max-append-size", 50_000), ("min-append-size", 20), ("max-age", 600),
        ]
        let report = try await Self.run(nil, only: ["4.1.4/*", "4.2/*", "4.4/*"], limits: limits)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default: Issue.record("\(result.info.id): \(result.outcome)")
            }
        }
        let passed = report.results.filter { $0.outcome == .pass }.map(\.info.id)
        for id in ["4.1.4/max-size", "4.1.4/max-size-counted", "4.1.4/max-append-size", "4.1.4/min-append-size"] {
            #expect(passed.contains(id))
        }
    }

    @Test("The case about a full disk passes")
    func fullDisk() async throws {
        let report = try await Self.run(nil, only: ["4.4/append", "restart/disk-full"], diskSize: 1 << 20)
        #expect(report.results.map(\.outcome) == [.pass, .pass])
    }

    @Test("A server with behavior that HTTP allows fails no MUST", arguments: AllowedServerBehavior.allCases)
    func legal(_ allowedBehavior: AllowedServerBehavior) async throws {
        let needed = ["4.2/complete", "4.2/chunked-complete", "4.2/create-empty", "4.4/append", "4.4/offset-mismatch"]
        let affected = allowedBehavior == .completesAtLength ? ["4.*", "v5/*", "v6/*", "10/*"] : ["9112/*"]
        let report = try await Self.run(nil, only: needed + affected, with: allowedBehavior)
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped, .warn: break
            default: Issue.record("\(result.info.id): \(result.outcome)")
            }
        }
    }

    @Test("Cases with two principals are skipped if there is only one principal")
    func onePrincipal() async throws {
        let report = try await Self.run(nil, only: ["13/*other*", "13/foreign-hidden"], others: [])
        #expect(report.results.count == 3)
        for result in report.results {
            guard case .skipped(let reason) = result.outcome else {
                Issue.record("\(result.info.id): \(result.outcome)")
                continue
            }
            #expect(reason.contains("--other-header"))
        }
    }

    @Test("Each defect is detected by its case", arguments: Defect.allCases)
    func broken(_ defect: Defect) async throws {
        var report = try await Self.detectionReport(for: defect)
        // Some defects have an effect only if threads run in a certain order.
        for _ in 0..<4 where !report.results.contains(where: { $0.info.id == defect.detectedBy && $0.isUnmet }) {
            report = try await Self.detectionReport(for: defect)
        }
        #expect(report.failure == nil)
        let caught = report.results.first { $0.info.id == defect.detectedBy }
        let result = try #require(caught)
        switch result.outcome {
        case .fail: #expect(result.info.level == .must && report.exitStatus(strict: false) == 1)
        case .warn: #expect(result.info.level != .must && report.exitStatus(strict: true) == 1)
        default: Issue.record("\(defect): \(result.outcome)")
        }
        #expect(!result.transcript.isEmpty || !defect.additionalCases.isEmpty)
    }

    private static func detectionReport(for defect: Defect) async throws -> RunReport {
        try await run(
            defect, only: [defect.detectedBy] + defect.additionalCases,
            diskSize: defect == .acknowledgesBeyondDisk ? 1 << 20 : nil)
    }

    static func run(
        _ defect: Defect?, only: [String] = [], limits: [(String, Int64)]? = nil, diskSize: Int64? = nil,
        others: [(String, String)] = [("Authorization", "Bearer two")],
        with allowedBehavior: AllowedServerBehavior? = nil
    ) async throws -> RunReport {
        try await onThread {
            let server =
                try limits.map { try ReferenceServer(defect, limits: $0) }
                ?? ReferenceServer(defect, diskSize: diskSize, with: allowedBehavior)
            var settings = ServerSettings(url: server.url)
            settings.only = only
            settings.fields = [("Authorization", "Bearer one")]
            settings.otherFields = others
            // With these defects the cases wait for the timeout.
            let isWaiting = defect == .waitsForStuckAppends || defect == .keepsStuckConnections
            settings.timeout = .seconds(isWaiting ? 1 : 10)
            return try ServerRun(settings, control: server).run()
        }
    }
}
