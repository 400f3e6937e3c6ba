import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// Tests of the client mode, with a client without defects and with a client for each defect.
@Suite("Reference client", .timeLimit(.minutes(15)), .serialized)
struct ReferenceClientTests {
    @Test("A client without a defect passes all scenarios, and two runs have the same outcomes")
    func unbroken() async throws {
        async let another = Self.run(nil)
        let report = try await Self.run(nil)
        let outcomes = report.results.map { "\($0.info.id) \($0.outcome.word)" }
        #expect(try await another.results.map { "\($0.info.id) \($0.outcome.word)" } == outcomes)
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default:
                let proof = result.transcript.map(TranscriptText.lines).joined()
                Issue.record("\(result.info.id): \(result.outcome)\n\(proof)")
            }
        }
        #expect(report.exitStatus(strict: true) == 0)
        #expect(report.count("pass") > 110)
        // A client that resumes transfers must not skip these scenarios.
        let required = [
            "4.1.1/lower", "4.1.1/lower-progress", "4.3/impossible", "4.4/conflict-lower", "4.4/conflict-beyond",
            "4.4/finish", "9651/length", "9651/offset-plus",
        ]
        for id in required { #expect(report.results.first { $0.info.id == id }?.outcome == .pass, "\(id)") }
        let cost = try #require(report.traffic["4.3/cut"])
        #expect(cost.transferred == cost.size && cost.recoveryMilliseconds != nil)
    }

    @Test("Each defect is detected")
    func broken() async throws {
        // Six runs are active at the same time, because a run mostly waits. With more runs, timeouts would expire.
        var remaining = ClientDefect.allCases[...]
        try await withThrowingTaskGroup(of: (ClientDefect, ClientReport).self) { group in
            func next() {
                guard let defect = remaining.popFirst() else { return }
                group.addTask {
                    var report = try await Self.detectionReport(for: defect)
                    // A timeout on a busy machine may hide the defect.
                    for _ in 0..<2
                    where !report.results.contains(where: { $0.info.id == defect.detectedBy && $0.isUnmet }) {
                        report = try await Self.detectionReport(for: defect)
                    }
                    return (defect, report)
                }
            }
            for _ in 0..<6 { next() }
            while let (defect, report) = try await group.next() {
                Self.expect(defect, toShowIn: report)
                next()
            }
        }
    }

    private static func detectionReport(for defect: ClientDefect) async throws -> ClientReport {
        try await run(defect, only: [defect.detectedBy] + defect.additionalCases)
    }

    private static func expect(_ defect: ClientDefect, toShowIn report: ClientReport) {
        guard let result = report.results.first(where: { $0.info.id == defect.detectedBy }) else {
            Issue.record("\(defect): \(defect.detectedBy) did not run")
            return
        }
        switch result.outcome {
        case .fail: #expect(result.info.level == .must && report.exitStatus(strict: false) == 1, "\(defect)")
        case .warn: #expect(result.info.level != .must && report.exitStatus(strict: true) == 1, "\(defect)")
        default: Issue.record("\(defect): \(result.outcome)")
        }
        #expect(!result.transcript.isEmpty, "\(defect)")
    }

    @Test("A client with behavior that the draft allows fails no MUST", arguments: AllowedClientBehavior.allCases)
    func legal(_ allowedBehavior: AllowedClientBehavior) async throws {
        let musts = ClientSuite.cases.filter { $0.level == .must }.map(\.id)
        let direction = allowedBehavior == .preallocates ? "14/" : ""
        let report = try await Self.run(nil, allowedBehavior, only: musts.filter { $0.hasPrefix(direction) })
        #expect(report.failure == nil)
        for result in report.results {
            switch result.outcome {
            case .pass, .skipped: break
            default:
                let proof = result.transcript.map(TranscriptText.lines).joined()
                Issue.record("\(result.info.id): \(result.outcome)\n\(proof)")
            }
        }
        #expect(report.results.first { $0.info.id == "4.2/complete" }?.outcome == (direction.isEmpty ? .pass : nil))
    }

    @Test("A client that reads responses late receives the offsets that the scenario requires")
    func readsLate() async throws {
        let report = try await Self.run(nil, .readsLate, only: ["4.1.1/lower-progress"])
        #expect(report.results.first?.outcome == .pass, "\(report.results)")
    }

    @Test("A client that repeats its requests without end is killed, and its requests are verified")
    func endless() async throws {
        let report = try await Self.run(.neverStops, only: ["4.3/error-for-ever", "9110/stops"])
        let result = try #require(report.results.first)
        guard case .warn(let finding) = result.outcome else {
            Issue.record("\(result.outcome)")
            return
        }
        #expect(finding.seen.contains("it repeated its requests"))
        let cost = try #require(report.traffic["4.3/error-for-ever"])
        #expect(
            cost.requests > ScenarioState.maxFruitless && cost.requests < 2 * ScenarioState.maxFruitless
                && cost.runs == 1)
    }

    @Test("A client that sends nothing cannot be verified")
    func idle() async throws {
        let report = try await onThread {
            var settings = ClientSettings()
            settings.uploadCommand = "exit 0; : {file} {url}"
            settings.only = ["4.2/complete"]
            return try ClientRun(settings).run()
        }
        #expect(report.exitStatus(strict: false) == 2)
    }

    @Test("The next run begins when a client has ended that ends some time after its command was killed")
    func late() async throws {
        let report = try await onThread {
            var settings = ClientSettings()
            settings.only = ["restart/*", "14/restart"]
            return ClientRun(settings, candidate: LateClient()).run()
        }
        #expect(report.results.count == 3)
        for result in report.results {
            #expect(
                result.outcome == .pass, "\(result.info.id)\n\(result.transcript.map(TranscriptText.lines).joined())")
        }
    }

    private static func run(
        _ defect: ClientDefect?, _ allowedBehavior: AllowedClientBehavior? = nil, only: [String] = []
    ) async throws -> ClientReport {
        try await onThread {
            var settings = ClientSettings()
            settings.only = only
            settings.jobs = 8
            settings.timeout = .seconds(300)
            return ClientRun(settings, candidate: ReferenceClient(defect, allowedBehavior)).run()
        }
    }
}

/// A client that runs outside its command, as a page in a browser does: it ends half a second after the command.
private struct LateClient: Candidate {
    func perform(_ task: CandidateTask) throws -> CandidateEnding {
        let killed = Monitor<Deadline?>(nil)
        let ending = Monitor<CandidateEnding?>(nil)
        let late = CandidateTask(
            direction: task.direction, file: task.file, url: task.url, state: task.state, output: task.output,
            deadline: task.deadline, shouldKill: { killed.withLock { $0?.isOver ?? false } })
        _ = try WorkerThread(name: "late") {
            let result = try? ReferenceClient().perform(late)
            ending.withLock { $0 = result ?? .exited(70) }
        }
        while true {
            if let ending = ending.withLock({ $0 }) { return ending }
            if task.shouldKill() {
                killed.withLock { $0 = Deadline(in: .milliseconds(500)) }
                return .killed
            }
            Deadline.pause(.milliseconds(5))
        }
    }
}
