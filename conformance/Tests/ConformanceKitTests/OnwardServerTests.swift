import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// The server part of the protocol suite: all cases of the harness test the server executable of this package.
@Suite("onward serve", .timeLimit(.minutes(15)))
struct OnwardServerTests {
    /// Cases that the standard configuration skips, and the configuration in which each of them has to pass.
    private static let configurations: [String: TestedConfiguration] = [
        "4.3/refuses-upload-fields": .version6,
        "4.4/no-media-type": .version5,
        "4.1.3/length-reached": .version6,
        "4.1.4/max-size": .limits,
        "4.1.4/max-size-counted": .limits,
        "4.1.4/max-append-size": .limits,
        "4.1.4/max-append-size-creation": .limits,
        "4.1.4/min-append-size": .limits,
        "4.1.4/last-append": .limits,
        "4.1.4/expiry": .limits,
        "4.1.4/min-size": .minSize,
        "4.5/no-content": .version6,
        "13/other-principal": .tokens,
        "13/other-cannot-finish": .tokens,
        "13/foreign-hidden": .tokens,
        "B/without-version": .rfc,
        "14/replaced": .put,
        "cors/preflight": .origins,
        "cors/exposure": .origins,
        "restart/disk-full": .smallDisk,
    ]

    /// Cases that no configuration can pass, with the reason. The test fails if one of them is not skipped.
    private static let skipped: [String: String] = [
        "10/running": "the server sends no digest of an incomplete upload",
        "v8/continued-elsewhere": "version 8 is the version of the other cases",
    ]

    private static let cases = ServerSuite.cases(for: Profile.versions.map { .interop($0) }).map(\.id)

    private static let casesOfFullDisk = cases.filter { configurations[$0] == .smallDisk }
    private static let otherCases = cases.filter { configurations[$0] != .smallDisk }

    @Test("The server passes every case", arguments: otherCases)
    func passes(_ id: String) async throws { try await expectResult(of: id) }

    @Test(
        "The server passes every case of a full disk",
        .enabled(if: TestedConfiguration.canMountDisk, "a small disk needs root and a data directory"),
        arguments: casesOfFullDisk)
    func passesOnFullDisk(_ id: String) async throws { try await expectResult(of: id) }

    private func expectResult(of id: String) async throws {
        let configuration = Self.configurations[id] ?? .standard
        let report = try await TestedConfiguration.reports.report(of: configuration)
        let result = try #require(report.results.first { $0.info.id == id }, "\(report.failure ?? "did not run")")
        if let reason = Self.skipped[id] {
            #expect(result.outcome.word == "skipped", "the case has to be skipped: \(reason)")
        } else {
            expectPass(result)
        }
    }

    @Test("The server fails no case in any configuration", arguments: TestedConfiguration.possible)
    func configuration(_ configuration: TestedConfiguration) async throws {
        let report = try await TestedConfiguration.reports.report(of: configuration)
        expectConformance(report)
        #expect(report.count("pass") > 0)
        if configuration == .standard {
            #expect(report.supportedProfiles.count == 6)
            #expect(report.results.map(\.info.id).sorted() == Self.cases.sorted())
        }
    }

    @Test("A client that does not trust the certificate gets no connection")
    func untrusted() async throws {
        let report = try await TestedConfiguration.tokens.run(trusting: .system, only: ["4.2/create-empty"])
        #expect(report.failure?.contains("no TLS") == true, "\(report.failure ?? "")")
    }

    @Test("A server is killed and started again if its command is a shell that waits for it")
    func waitingShell() async throws {
        let command = try
            "\(ExecutableLocation.onward()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0; exit $?"
        for _ in 1...3 {
            var settings = ServerSettings(url: "")
            settings.startCommand = command
            settings.only = ["4.2/create-part", "4.4/append", "restart/*"]
            settings.timeout = .seconds(20)
            let report = try await onThread { [settings] in try ServerRun(settings).run() }
            expectConformance(report)
            for id in ["restart/offset-kept", "restart/finished"] {
                #expect(report.results.contains { $0.info.id == id && $0.outcome == .pass }, "\(id)")
            }
        }
    }

    @Test("If a server leaves the process group of its command, the attempt to kill it reports an error")
    func escaped() async throws {
        let directory = try TemporaryDirectory()
        let pidFile = directory.path + "/pid"
        let serve = try "exec \(ExecutableLocation.onward()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0"
        let command = "setsid sh -c 'echo $$ >\(pidFile); \(serve)' & wait"
        let refusal = try await onThread { () throws -> String? in
            let process = try SubjectProcess(command: command)
            try process.start()
            do { try process.kill() } catch { return "\(error)" }
            return nil
        }
        #expect(refusal?.contains("start it in the foreground") == true)
        let pid = try #require(pid_t(String(contentsOfFile: pidFile, encoding: .utf8).filter(\.isNumber)))
        Glibc.kill(pid, SIGKILL)
    }
}

/// Records an issue unless the case passed.
func expectPass(_ result: CaseResult, sourceLocation: SourceLocation = #_sourceLocation) {
    guard result.outcome != .pass else { return }
    let transcript = result.transcript.map(TranscriptText.lines).joined()
    Issue.record("\(result.info.id): \(result.outcome)\n\(transcript)", sourceLocation: sourceLocation)
}

/// Records an issue for each case that neither passed nor was skipped.
func expectConformance(_ report: some CaseReport, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(report.failure == nil, sourceLocation: sourceLocation)
    for result in report.results where result.outcome.word != "skipped" {
        expectPass(result, sourceLocation: sourceLocation)
    }
}
