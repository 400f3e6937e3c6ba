import SystemCalls

/// One run of the server mode: probes the subject, runs the cases in order, and collects the results.
package final class ServerRun {
    private let subject: Subject
    private let observations = Observations()
    private var results: [CaseResult] = []
    private var outcomes: [String: Outcome] = [:]

    /// - Throws: ``RunFailure`` if the settings are invalid.
    package convenience init(_ settings: ServerSettings) throws {
        var settings = settings
        var control: SubjectProcess?
        if let command = settings.startCommand {
            let process = try SubjectProcess(command: command, diskSize: settings.diskSize)
            settings.url = settings.url.isEmpty ? "http://127.0.0.1:{port}/files/" : settings.url
            settings.url = settings.url.replacing("{port}", with: "\(process.port)")
            control = process
        }
        try self.init(settings, control: control)
    }

    init(_ settings: ServerSettings, control: (any SubjectControl)?) throws {
        guard let endpoint = Endpoint(settings.url, trusting: settings.trust) else {
            throw RunFailure("'\(settings.url)' is not a URL of the form http://host[:port]/path or https://…")
        }
        subject = Subject(settings: settings, endpoint: endpoint, control: control)
    }

    /// Runs all cases. `progress` receives each result as soon as its case has ended, and returns whether to continue.
    package func run(_ progress: (CaseResult) -> Bool = { _ in true }) -> RunReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        var failure: String?
        do {
            try subject.control?.start()
            try SubjectProbe(subject: subject, observations: observations).run()
            runCases(progress)
            if let lastAnswered { failure = "the server stopped answering during the case \(lastAnswered)" }
            if results.isEmpty {
                failure = "no case has an ID that matches '\(subject.settings.only.joined(separator: "', '"))'"
            }
        } catch let setup as SetupFailure {
            failure = "expected \(setup.finding.expected), seen: \(setup.finding.seen)"
        } catch {
            failure = "\(error)"
        }
        try? subject.control?.kill()
        return RunReport(
            url: subject.endpoint.url, method: subject.method, base: subject.defaultProfile,
            supportedProfiles: subject.supportedProfiles,
            isAnnouncing: subject.isAnnouncing, limits: subject.limits, download: subject.downloadSource?.rawValue,
            beganAt: began, milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000, results: results,
            failure: failure)
    }

    /// The ID of the case after which the subject stopped answering; `nil` while it answers.
    private var lastAnswered: String?

    private func runCases(_ progress: (CaseResult) -> Bool) {
        let patterns = subject.settings.only.map(Glob.init)
        for next in ServerSuite.cases(
            for: subject.supportedProfiles.isEmpty ? [subject.defaultProfile] : subject.supportedProfiles)
        {
            if !patterns.isEmpty, !patterns.contains(where: { $0.matches(next.id) }) { continue }
            let result = lastAnswered.map { resultWithoutRun(next, .blocked(by: $0)) } ?? run(next)
            results.append(result)
            outcomes[next.id] = result.outcome
            guard progress(result) else { return }
            if lastAnswered == nil, result.outcome.isTranscriptNeeded, !isAnswering() { lastAnswered = next.id }
        }
    }

    private func run(_ next: Case) -> CaseResult {
        let profile = next.profile ?? subject.defaultProfile
        if !next.ranks.contains(profile.rank) { return resultWithoutRun(next, .skipped("not required by \(profile)")) }
        for need in next.needs {
            switch outcomes[need] {
            case .skipped(let reason)?: return resultWithoutRun(next, .skipped("\(need) was skipped: \(reason)"))
            case let outcome? where outcome.isBlocking: return resultWithoutRun(next, .blocked(by: need))
            default: break
            }
        }
        let context = CaseContext(subject: subject, profile: profile, observations: observations)
        let start = SystemClock.monotonicNanoseconds()
        let outcome = verify(next, context)
        let time = SystemClock.monotonicNanoseconds() - start
        context.cancelUploads()
        let keepsTranscript = outcome.isTranscriptNeeded
        return CaseResult(
            info: next.info, outcome: outcome, notes: context.notes,
            transcript: keepsTranscript ? context.transcript.entries : [],
            omittedEvents: keepsTranscript ? context.transcript.omittedEvents : 0,
            command: keepsTranscript ? context.lastRequest.flatMap { CurlCommand($0.request, $0.endpoint)?.text } : nil,
            milliseconds: time / 1_000_000)
    }

    private func verify(_ next: Case, _ context: CaseContext) -> Outcome {
        do {
            try next.body(context)
            return .pass
        } catch let unmet as Unmet {
            return next.level == .must ? .fail(unmet.finding) : .warn(unmet.finding)
        } catch let failure as WireFailure {
            let finding = Finding(expected: "a response", seen: "\(failure)")
            return next.level == .must ? .fail(finding) : .warn(finding)
        } catch let skip as NotOffered {
            return .skipped(skip.reason)
        } catch let setup as SetupFailure {
            return .setup(setup.finding)
        } catch {
            return .harness("\(error)")
        }
    }

    private func resultWithoutRun(_ next: Case, _ outcome: Outcome) -> CaseResult {
        CaseResult(
            info: next.info, outcome: outcome, notes: [], transcript: [], omittedEvents: 0, command: nil,
            milliseconds: 0)
    }

    /// Returns whether the subject still answers. A subject that the harness started is restarted if it does not.
    private func isAnswering() -> Bool {
        if answersOptions() { return true }
        guard let control = subject.control else { return answersOptions() }
        do {
            try control.kill()
            try control.start()
            return answersOptions()
        } catch {
            return false
        }
    }

    private func answersOptions() -> Bool {
        let context = CaseContext(subject: subject, profile: subject.defaultProfile, observations: observations)
        return (try? context.exchange(Request("OPTIONS", subject.newTarget(), subject.extraFields))) != nil
    }
}

extension Outcome {
    /// Whether reports show the transcript of a case with this outcome.
    var isTranscriptNeeded: Bool {
        switch self {
        case .fail, .warn, .setup, .harness: true
        case .pass, .skipped, .blocked: false
        }
    }
}
