import Foundation
import Glibc
import SystemCalls
import TLS
import TestSupport
import Testing

@testable import ConformanceKit

/// The server of this package, judged without mercy: as its executable, from outside.
@Suite("onward serve", .timeLimit(.minutes(15)), .serialized)
struct OnwardServerTests {
    @Test("The server meets every MUST and every SHOULD of the server mode")
    func everything() async throws {
        let report = try await Self.judge([])
        Self.expectConformance(report)
        #expect(report.spoken.count == 6)
        #expect(report.count("pass") > 330)
    }

    @Test("Limits are told and kept")
    func limits() async throws {
        let report = try await Self.judge(
            ["--max-size", "100000", "--max-append-size", "50000", "--min-append-size", "20", "--max-age", "3"],
            only: ["4.1.4/*", "4.2/*", "4.4/*", "4.3/*"])
        Self.expectConformance(report)
        let passed = report.results.filter { $0.outcome == .pass }.map(\.subject.id)
        for id in [
            "4.1.4/max-size", "4.1.4/max-size-counted", "4.1.4/max-append-size", "4.1.4/min-append-size",
            "4.1.4/expiry",
        ] {
            #expect(passed.contains(id))
        }
    }

    @Test("With the RFC's announcements the server meets the RFC's profile")
    func rfc() async throws {
        let report = try await Self.judge(
            ["--announce-without-version"], only: ["4.*", "5/*", "B/*", "9651/*", "10/*"], profiles: [.rfc])
        Self.expectConformance(report)
        #expect(report.results.contains { $0.subject.id == "B/without-version" && $0.outcome == .pass })
    }

    @Test("By PUT to names of the client's choice")
    func put() async throws {
        let report = try await Self.judge([], only: ["4.*", "14/*", "restart/*"], method: "PUT", path: "/files/{name}")
        Self.expectConformance(report)
        #expect(report.results.contains { $0.subject.id == "14/single" && $0.outcome == .pass })
    }

    @Test("By TLS, and to two principals who do not see each other's uploads")
    func secured() async throws {
        let identity = try TestIdentity()
        let tokens = identity.directory + "/tokens"
        try Data("one first-token\ntwo second-token\n".utf8).write(to: URL(fileURLWithPath: tokens))
        let options = [
            "--tls-cert", identity.certificate, "--tls-key", identity.key, "--token-file", tokens,
        ]
        let report = try await Self.judge(
            options, only: ["4.2/*", "4.4/*", "4.6/*", "13/*", "restart/offset-kept"], scheme: "https",
            trust: .authorities(path: identity.certificate),
            fields: [("Authorization", "Bearer first-token")], others: [("Authorization", "Bearer second-token")])
        Self.expectConformance(report)
        for id in ["13/other-principal", "13/other-cannot-finish", "13/foreign-hidden", "restart/offset-kept"] {
            #expect(report.results.contains { $0.subject.id == id && $0.outcome == .pass }, "\(id)")
        }
        let stranger = try await Self.judge(options, only: ["4.2/create-empty"], scheme: "https")
        #expect(stranger.failure?.contains("no TLS") == true, "\(stranger.failure ?? "")")
        withExtendedLifetime(identity) {}
    }

    @Test("A server is killed and started again where its command is a shell that waits for it")
    func waitingShell() async throws {
        let command = try "\(Self.executable()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0; exit $?"
        for _ in 1...3 {
            let report = try await Self.judge(
                command: command, only: ["4.2/create-part", "4.4/append", "restart/*"])
            Self.expectConformance(report)
            for id in ["restart/offset-kept", "restart/finished"] {
                #expect(report.results.contains { $0.subject.id == id && $0.outcome == .pass }, "\(id)")
            }
        }
    }

    @Test("A server that leaves the process group of its command cannot be killed, which is said")
    func escaped() async throws {
        let pidFile = NSTemporaryDirectory() + "/conformance-\(UInt64.random(in: 0...UInt64.max)).pid"
        defer { try? FileManager.default.removeItem(atPath: pidFile) }
        let serve = try "exec \(Self.executable()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0"
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

    private static func expectConformance(_ report: RunReport) {
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

    private static func judge(
        _ options: [String], only: [String] = [], profiles: [Profile] = [], method: String = "POST",
        path: String = "/files/", scheme: String = "http", trust: TLSTrust = .system,
        fields: [(String, String)] = [], others: [(String, String)] = []
    ) async throws -> RunReport {
        let words = options.joined(separator: " ")
        let command = try "exec \(executable()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0 \(words)"
        return try await judge(
            command: command, only: only, profiles: profiles, method: method, path: path, scheme: scheme, trust: trust,
            fields: fields, others: others)
    }

    private static func judge(
        command: String, only: [String], profiles: [Profile] = [], method: String = "POST", path: String = "/files/",
        scheme: String = "http", trust: TLSTrust = .system, fields: [(String, String)] = [],
        others: [(String, String)] = []
    ) async throws -> RunReport {
        try await onThread {
            var settings = ServerSettings(url: "\(scheme)://127.0.0.1:{port}\(path)")
            settings.startCommand = command
            settings.only = only
            settings.profiles = profiles
            settings.method = method
            settings.trust = trust
            settings.fields = fields
            settings.otherFields = others
            settings.timeout = .seconds(20)
            return try ServerRun(settings).run()
        }
    }

    /// `ONWARD_EXECUTABLE`, or `onward` beside the test bundle.
    static func executable() throws -> String {
        if let named = ProcessInfo.processInfo.environment["ONWARD_EXECUTABLE"] { return named }
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let places = [bundle, CommandLine.arguments[0]].compactMap { path in
            path.lastIndex(of: "/").map { path[..<$0] + "/onward" }
        }
        return try #require(places.map(String.init).first { access($0, X_OK) == 0 }, "no onward in \(places)")
    }
}
