import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// Tests of the proxy mode, with a proxy without faults and with a proxy for each fault.
@Suite("Proxy mode", .timeLimit(.minutes(15)))
struct ProxyTests {
    /// Whether to run the tests that have to wait for a timeout.
    private static let mayWait = ProcessInfo.processInfo.environment["ONWARD_PROXIES"] == "1"

    @Test("All checks of a proxy without a fault are good")
    func unbroken() async throws {
        // All messages arrive immediately, so a long timeout does not make the test slower.
        let report = try await Self.run(nil, timeout: .seconds(20))
        #expect(report.failure == nil)
        for finding in report.findings where finding.grade != .good {
            #expect(finding.id == "large-head" && finding.grade == .neutral, "\(finding.id): \(finding.answer)")
        }
        #expect(report.findings.count == 15)
        #expect(report.verdict?.usability == .usable)
        #expect(report.verdict?.settings == ["interim responses: on"])
        #expect(report.exitStatus == 0)
    }

    @Test(
        "Each fault is detected, and a setting for it is recommended",
        arguments: ProxyFault.allCases.filter { !$0.isFoundByWaiting })
    func broken(_ fault: ProxyFault) async throws {
        // These faults are detected without a wait.
        try await Self.expect(fault, timeout: .seconds(20))
    }

    @Test(
        "Each fault that delays or drops a message is detected", .enabled(if: mayWait, "make test-proxies"),
        arguments: ProxyFault.allCases.filter(\.isFoundByWaiting))
    func withholding(_ fault: ProxyFault) async throws {
        try await Self.expect(fault, timeout: .seconds(5))
    }

    private static func expect(_ fault: ProxyFault, timeout: Duration) async throws {
        let expected = fault.detectedBy
        let report = try await run(fault, only: [expected.id], timeout: timeout)
        let finding = try #require(report.findings.last { $0.id == expected.id })
        #expect(finding.grade.rawValue == expected.grade, "\(finding.answer)")
        #expect(finding.answer.contains(expected.answer), "\(finding.answer)")
        let settings = try #require(report.verdict).settings
        if !expected.setting.isEmpty {
            #expect(settings.contains { $0.contains(expected.setting) }, "\(settings)")
        }
        #expect(!finding.transcript.isEmpty)
    }

    @Test("A proxy that forwards to another port cannot be verified")
    func elsewhere() async throws {
        let report = try await onThread {
            let unused = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
            let free = FileDescriptor(owning: unused.release())
            defer { withExtendedLifetime(free) {} }
            guard case .tcp(_, let other) = unused.address else { throw TestFailure("no port") }
            let proxy = try FaultyProxy(upstreamPort: other)
            var settings = ProxySettings(url: proxy.url)
            settings.timeout = .milliseconds(200)
            settings.upstreamPort = 1
            let bench = try ProxyBench(settings, port: 0)
            defer { withExtendedLifetime(proxy) {} }
            return ProxyRun(bench).run()
        }
        #expect(report.exitStatus == 2 && report.verdict == nil)
        #expect(report.failure?.contains("--upstream-port") == true)
    }

    @Test("The findings are written to a JSON document with a fixed schema")
    func json() async throws {
        let report = try await Self.run(.refusesPatch, only: ["methods"], timeout: .seconds(5))
        let object = try JSONSerialization.jsonObject(with: report.json())
        let members = try #require(object as? [String: Any])
        #expect(members["version"] as? Int == 1 && members["mode"] as? String == "proxy")
        #expect(members["usability"] as? String == "unusable" && members["exitStatus"] as? Int == 1)
        let findings = try #require(members["findings"] as? [[String: Any]])
        #expect(findings.contains { $0["id"] as? String == "methods" && $0["grade"] as? String == "bad" })
    }

    private static func run(
        _ fault: ProxyFault?, only: Set<String>? = nil, timeout: Duration
    ) async throws -> ProxyReport {
        try await onThread {
            var settings = ProxySettings(url: "http://127.0.0.1:1/")
            settings.timeout = timeout
            let bench = try ProxyBench(settings, port: 0)
            let proxy = try FaultyProxy(upstreamPort: bench.upstreamPort, fault)
            defer { withExtendedLifetime(proxy) {} }
            return ProxyRun(try bench.bench(for: proxy.url), only: only).run()
        }
    }

    // MARK: - A server behind a proxy

    @Test("All checks of a server behind a proxy without a fault are good")
    func deployment() async throws {
        let report = try await Self.deploy(nil, timeout: .seconds(20))
        #expect(report.failure == nil)
        for finding in report.findings { #expect(finding.grade == .good, "\(finding.id): \(finding.answer)") }
        #expect(report.verdict?.usability == .usable)
    }

    @Test(
        "A fault of a proxy in front of a deployed server is detected",
        arguments: [(ProxyFault.losesRange, "range", "poor"), (ProxyFault.endsChunksCleanly, "abort-chunked", "bad")])
    func changed(_ fault: ProxyFault, _ id: String, _ grade: String) async throws {
        let report = try await Self.deploy(fault, timeout: .seconds(20))
        let finding = try #require(report.findings.first { $0.id == id }, "\(report.failure ?? "")")
        #expect(finding.grade.rawValue == grade, "\(finding.answer)")
    }

    @Test(
        "A fault that delays or drops a message in front of a deployed server is detected",
        .enabled(if: mayWait, "make test-proxies"),
        arguments: [
            (ProxyFault.buffersBodies, "body", "bad"), (ProxyFault.buffersChunkedBodies, "body-chunked", "poor"),
            (ProxyFault.dropsInterim, "interim", "poor"), (ProxyFault.dropsInterim, "location", "poor"),
            (ProxyFault.treatsInterimAsFinal, "interim", "bad"), (ProxyFault.delaysAnswers, "early-answer", "poor"),
        ])
    func deployment(_ fault: ProxyFault, _ id: String, _ grade: String) async throws {
        let report = try await Self.deploy(fault, timeout: .seconds(1))
        let finding = try #require(report.findings.first { $0.id == id }, "\(report.failure ?? "")")
        #expect(finding.grade.rawValue == grade, "\(finding.answer)")
    }

    private static func deploy(_ fault: ProxyFault?, timeout: Duration) async throws -> ProxyReport {
        try await onThread {
            let server = try ReferenceServer(fault == .dropsInterim ? .locatesDifferently : nil)
            let proxy = try FaultyProxy(upstreamPort: server.port, fault)
            defer { withExtendedLifetime((server, proxy)) {} }
            var settings = ProxySettings(url: proxy.url)
            settings.timeout = timeout
            return try DeploymentRun(settings).run()
        }
    }
}
