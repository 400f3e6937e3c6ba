import HTTPSemantics
import SystemCalls

/// One run of the proxy mode with a scripted upstream.
package final class ProxyRun {
    let bench: ProxyBench
    var behavior = ProxyBehavior()
    private var findings: [ProxyFinding] = []
    private var shouldContinue = true

    /// The IDs of the checks to make in addition to `reach`; `nil` for all.
    private let only: Set<String>?

    /// The result of a probe.
    typealias Answer = (grade: ProxyFinding.Grade, text: String)

    /// - Throws: ``RunFailure`` if the settings are invalid, or the port is not free.
    package convenience init(_ settings: ProxySettings) throws {
        guard let port = settings.upstreamPort else { throw RunFailure("--upstream-port is missing") }
        self.init(try ProxyBench(settings, port: port))
    }

    init(_ bench: ProxyBench, only: Set<String>? = nil) {
        self.bench = bench
        self.only = only
    }

    /// Runs all checks. `progress` receives each finding as soon as it is known, and returns whether to continue.
    package func run(_ progress: (ProxyFinding) -> Bool = { _ in true }) -> ProxyReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        var failure: String?
        check("reach", "Requests reach the server", progress) { try self.reach() }
        if findings.last?.grade == .bad {
            failure = "no request reached the upstream: \(findings.last?.answer ?? "")"
        } else {
            check("methods", "Methods", progress) { try self.methods() }
            check("request-fields", "Fields of requests", progress) { try self.requestFields() }
            check("response-fields", "Fields of responses", progress) { try self.responseFields() }
            check("body", "Body with a length", progress) { try self.body(isChunked: false) }
            check("body-chunked", "Body without a length", progress) { try self.body(isChunked: true) }
            check("interim", "104 responses", progress) { try self.interim() }
            check("expect", "Expect: 100-continue", progress) { try self.expectation() }
            check("abort", "Client closes the connection", progress) {
                try self.abort(isChunked: false, byReset: false)
            }
            check("abort-reset", "Client resets", progress) { try self.abort(isChunked: false, byReset: true) }
            check("abort-chunked", "Client closes; chunked body", progress) {
                try self.abort(isChunked: true, byReset: false)
            }
            check("early-answer", "Response during a body", progress) { try self.earlyAnswer() }
            check("body-limit", "Longest body", progress) { try self.bodyLimit() }
            check("range", "Range and If-Range", progress) { try self.ranges() }
            check("large-head", "Long header section", progress) { try self.largeHead() }
        }
        return ProxyReport(
            url: bench.endpoint.url, hasUpstream: true, beganAt: began,
            milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000, findings: findings,
            verdict: failure == nil ? ProxyVerdict(behavior) : nil, failure: failure)
    }

    private func check(
        _ id: String, _ title: String, _ progress: (ProxyFinding) -> Bool, _ probe: () throws -> Answer
    ) {
        if !shouldContinue || id != "reach" && only?.contains(id) == false { return }
        bench.begin()
        let answer: Answer
        do {
            answer = try probe()
        } catch {
            answer = (.bad, "\(error)")
        }
        let finding = ProxyFinding(
            id: id, title: title, grade: answer.grade, answer: answer.text, transcript: bench.transcript.entries,
            omittedEvents: bench.transcript.omittedEvents)
        findings.append(finding)
        shouldContinue = progress(finding)
    }

    static func milliseconds(since start: Int64) -> Int64 {
        (SystemClock.monotonicNanoseconds() - start) / 1_000_000
    }
}
