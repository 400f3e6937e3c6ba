import Foundation
import SystemCalls

/// Runs the client in one scenario.
struct ScenarioRun {
    let scenario: Scenario
    let settings: ClientSettings
    let candidate: any Candidate

    struct Result: Sendable {
        let result: CaseResult
        let record: ScenarioRecord
        let isFileChanged: Bool
        let transcript: [Transcript.Entry]
        let omitted: Int
    }

    func run() -> Result {
        let start = SystemClock.monotonicNanoseconds()
        let shared = ScenarioState(scenario)
        var outcome: Outcome
        var record = shared.record
        do {
            record = try perform(shared)
            outcome = verify(record)
        } catch {
            shared.end()
            outcome = .harness("\(error)")
        }
        let (entries, omitted) = shared.transcript
        let isShown = outcome.isTranscriptNeeded
        let result = CaseResult(
            info: scenario.info, outcome: outcome, notes: notes(record), transcript: isShown ? entries : [],
            omittedEvents: isShown ? omitted : 0, command: nil,
            milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000)
        var isFileChanged = false
        if case .changesFile = scenario.interlude { isFileChanged = true }
        return Result(
            result: result, record: record, isFileChanged: isFileChanged, transcript: entries, omitted: omitted)
    }

    private func notes(_ record: ScenarioRecord) -> [String] {
        record.requests.isEmpty ? [] : [record.traffic.text]
    }

    private func verify(_ record: ScenarioRecord) -> Outcome {
        if record.requests.isEmpty {
            let wrote = record.output.isEmpty ? "" : "; its output: \(record.output.suffix(400))"
            return .setup(Finding(expected: "a request", seen: "none; \(record.endingText)\(wrote)"))
        }
        do {
            try scenario.verify(record)
            return .pass
        } catch let unmet as Unmet {
            if let reason = settings.kind?.obstacle(to: scenario.info.id) { return .skipped(reason) }
            if record.hasOnlyPlainRequests, record.isTruthful { return .skipped("the client does not use the draft") }
            return scenario.info.level == .must ? .fail(unmet.finding) : .warn(unmet.finding)
        } catch let skip as NotOffered {
            return .skipped(skip.reason)
        } catch {
            return .harness("\(error)")
        }
    }

    /// Runs the command, and returns the record. The command runs again if its exit status requests another run or if
    /// the scenario has killed it.
    private func perform(_ shared: ScenarioState) throws -> ScenarioRecord {
        let scratch = try ScratchDirectory()
        defer { withExtendedLifetime(scratch) {} }
        let directory = scratch.path
        let file = directory + "/file"
        let state = directory + "/state"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
        if scenario.direction == .upload { try Data(shared.content).write(to: URL(fileURLWithPath: file)) }
        let server = try ScenarioServer(shared)
        defer { server.stop() }
        let place = scenario.direction == .upload ? UploadModel.target : DownloadModel.target
        let deadline = Deadline(in: settings.timeout)
        var endings: [CandidateEnding] = []
        repeat {
            if !endings.isEmpty {
                shared.nextRun()
                if case .changesFile = scenario.interlude {
                    let other = TestContent.bytes(Int(scenario.size), from: 70_000_000)
                    try Data(other).write(to: URL(fileURLWithPath: file))
                }
            }
            let task = CandidateTask(
                direction: scenario.direction, file: file, url: server.origins[0] + place, state: state,
                output: directory + "/output", deadline: deadline, shouldKill: { shared.shouldKill })
            let ending = try candidate.perform(task)
            if ending == .killed, !shared.hasRepeatedRequests {
                shared.kill()
                while !shared.hasKilledClientEnded, !deadline.isOver { Deadline.pause(.milliseconds(5)) }
            }
            endings.append(shared.hasRepeatedRequests ? .repeatedRequests : ending)
        } while endings.count < settings.maxRuns && !deadline.isOver && needsAnotherRun(endings)
        server.stop()
        var record = shared.record
        record.endings = endings
        record.output =
            (try? String(decoding: Data(contentsOf: URL(fileURLWithPath: directory + "/output")), as: UTF8.self)) ?? ""
        if scenario.direction == .download {
            record.file = (try? Data(contentsOf: URL(fileURLWithPath: file))).map { [UInt8]($0) }
        }
        return record
    }

    private func needsAnotherRun(_ endings: [CandidateEnding]) -> Bool {
        endings.last == .killed || endings.last == .exited(settings.runsAgainOn)
    }
}
