import HTTPSemantics
import SystemCalls

/// One run of the proxy mode with a scripted upstream: asks one thing after the other, and concludes.
package final class ProxyRun {
    let bench: ProxyBench
    var behavior = ProxyBehavior()
    private var findings: [ProxyFinding] = []
    private var isWanted = true

    /// The IDs of what is asked besides whether requests arrive; nil is everything.
    private let only: Set<String>?

    /// What a probe reports.
    typealias Answer = (grade: ProxyFinding.Grade, text: String)

    /// - Throws: ``RunFailure`` where the settings make no sense, or the port is not free.
    package convenience init(_ settings: ProxySettings) throws {
        guard let port = settings.upstreamPort else { throw RunFailure("the port of the upstream is missing") }
        self.init(try ProxyBench(settings, port: port))
    }

    init(_ bench: ProxyBench, only: Set<String>? = nil) {
        self.bench = bench
        self.only = only
    }

    /// Runs everything; `progress` receives each finding as it comes, and returns whether to continue.
    package func run(_ progress: (ProxyFinding) -> Bool = { _ in true }) -> ProxyReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        var failure: String?
        ask("reach", "Requests reach the server", progress) { try self.reach() }
        if findings.last?.grade == .bad {
            failure = "no request reached the upstream: \(findings.last?.answer ?? "")"
        } else {
            ask("methods", "Methods", progress) { try self.methods() }
            ask("request-fields", "Fields of requests", progress) { try self.requestFields() }
            ask("response-fields", "Fields of responses", progress) { try self.responseFields() }
            ask("body", "Body with a length", progress) { try self.body(isChunked: false) }
            ask("body-chunked", "Body without a length", progress) { try self.body(isChunked: true) }
            ask("interim", "104 responses", progress) { try self.interim() }
            ask("expect", "Expect: 100-continue", progress) { try self.expectation() }
            ask("abort", "Client goes away", progress) { try self.abort(isChunked: false, byReset: false) }
            ask("abort-reset", "Client resets", progress) { try self.abort(isChunked: false, byReset: true) }
            ask("abort-chunked", "… in a body without a length", progress) {
                try self.abort(isChunked: true, byReset: false)
            }
            ask("early-answer", "Answer during a body", progress) { try self.earlyAnswer() }
            ask("body-limit", "Longest body", progress) { try self.bodyLimit() }
            ask("range", "Range and If-Range", progress) { try self.ranges() }
            ask("large-head", "Long header section", progress) { try self.largeHead() }
        }
        return ProxyReport(
            url: bench.endpoint.url, hasUpstream: true, beganAt: began,
            milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000, findings: findings,
            verdict: failure == nil ? ProxyVerdict(behavior) : nil, failure: failure)
    }

    private func ask(
        _ id: String, _ title: String, _ progress: (ProxyFinding) -> Bool, _ probe: () throws -> Answer
    ) {
        if !isWanted || id != "reach" && only?.contains(id) == false { return }
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
        isWanted = progress(finding)
    }

    static func milliseconds(since start: Int64) -> Int64 {
        (SystemClock.monotonicNanoseconds() - start) / 1_000_000
    }
}
