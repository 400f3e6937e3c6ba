import SystemCalls

/// One run of the client mode: runs the scenarios, several at the same time, and collects the results in order.
package final class ClientRun {
    private struct Queue {
        var next = 0
        var results: [Int: ScenarioRun.Result] = [:]
    }

    private let settings: ClientSettings
    private let candidate: any Candidate
    private let hasUploads: Bool
    private let hasDownloads: Bool

    /// - Throws: ``RunFailure`` if there is no command.
    package convenience init(_ settings: ClientSettings) throws {
        if settings.uploadCommand == nil && settings.downloadCommand == nil {
            throw RunFailure("there is no command to test")
        }
        self.init(
            settings, candidate: CommandCandidate(upload: settings.uploadCommand, download: settings.downloadCommand),
            hasUploads: settings.uploadCommand != nil, hasDownloads: settings.downloadCommand != nil)
    }

    init(_ settings: ClientSettings, candidate: any Candidate, hasUploads: Bool = true, hasDownloads: Bool = true) {
        self.settings = settings
        self.candidate = candidate
        self.hasUploads = hasUploads
        self.hasDownloads = hasDownloads
    }

    /// Runs all scenarios. `progress` receives each result in the order of the report, and returns whether to continue.
    package func run(_ progress: (CaseResult) -> Bool = { _ in true }) -> ClientReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        let patterns = settings.only.map(Glob.init)
        func isSelected(_ info: CaseInfo) -> Bool {
            patterns.isEmpty || patterns.contains { $0.matches(info.id) }
        }
        let scenarios = ClientSuite.scenarios(seed: settings.seed).filter { scenario in
            isSelected(scenario.info) && (scenario.direction == .upload ? hasUploads : hasDownloads)
        }
        var results: [CaseResult] = []
        var traffic: [String: Traffic] = [:]
        var rules = ClientRules()
        var transcripts: [String: (entries: [Transcript.Entry], omitted: Int)] = [:]
        var failure: String?
        var shouldContinue = true
        do {
            try runScenarios(scenarios) { next in
                // The requests of a scenario that the client cannot pass do not count against it.
                let isPossible = settings.kind?.obstacle(to: next.result.info.id) == nil
                if isPossible { rules.observe(next.record, isFileChanged: next.isFileChanged) }
                traffic[next.result.info.id] = next.record.traffic
                transcripts[next.result.info.id] = (next.transcript, next.omitted)
                results.append(next.result)
                shouldContinue = progress(next.result)
                return shouldContinue
            }
        } catch {
            failure = "\(error)"
        }
        for (rule, info) in ClientRules.cases where shouldContinue && isSelected(info) {
            guard ClientRules.isAboutDownloads(rule) ? hasDownloads : hasUploads || rule.isAboutBoth else {
                continue
            }
            let outcome = rules.outcome(of: rule, info)
            // A violation of an informational rule is a note, not a failure.
            let isReported = info.level == .info && outcome.isTranscriptNeeded
            let proof = isReported ? nil : rules.first[rule].flatMap { transcripts[$0] }
            let result = CaseResult(
                info: info, outcome: isReported ? .pass : outcome,
                notes: isReported ? [outcome.summary ?? ""] : [], transcript: proof?.entries ?? [],
                omittedEvents: proof?.omitted ?? 0, command: nil, milliseconds: 0)
            results.append(result)
            shouldContinue = progress(result)
        }
        if results.isEmpty { failure = "no case has an ID that matches '\(settings.only.joined(separator: "', '"))'" }
        return ClientReport(
            uploadCommand: settings.uploadCommand, downloadCommand: settings.downloadCommand, seed: settings.seed,
            beganAt: began, milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000, results: results,
            traffic: traffic, failure: failure)
    }

    /// Runs the scenarios on several threads. The calling thread passes the results in order to `receive`, until
    /// `receive` returns false.
    private func runScenarios(_ scenarios: [Scenario], _ receive: (ScenarioRun.Result) -> Bool) throws {
        let queue = Monitor(Queue())
        let workers = try (0..<max(1, settings.jobs)).map { _ in
            try WorkerThread(name: "scenario") { [settings, candidate] in
                while true {
                    let index = queue.withLock { queue in
                        defer { queue.next += 1 }
                        return queue.next
                    }
                    guard index < scenarios.count else { return }
                    let run = ScenarioRun(scenario: scenarios[index], settings: settings, candidate: candidate)
                    let result = run.run()
                    queue.withLock { $0.results[index] = result }
                    queue.notifyAll()
                }
            }
        }
        for index in scenarios.indices {
            if receive(queue.waitForever { $0.results.removeValue(forKey: index) }) { continue }
            queue.withLock { $0.next = scenarios.count }
            break
        }
        for worker in workers { worker.join() }
    }
}

extension ClientRules {
    fileprivate func outcome(of rule: Rule, _ info: CaseInfo) -> Outcome {
        let seen = Self.isAboutDownloads(rule) ? downloads : rule.isAboutBoth ? uploads + downloads : uploads
        guard let violations = violations[rule], let first = violations.first else {
            return seen > 0 ? .pass : .skipped("there was no request to check")
        }
        let more = violations.count > 1 ? ", and \(violations.count - 1) more" : ""
        let finding = Finding(expected: "no violation of this requirement in any scenario", seen: first + more)
        return info.level == .must ? .fail(finding) : .warn(finding)
    }
}
