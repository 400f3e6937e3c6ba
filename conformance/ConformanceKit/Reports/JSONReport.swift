import FoundationEssentials

/// A run as JSON. The schema is stable: members are added, never changed, and `version` says which it is.
package struct JSONReport: JSONDocument {
    private let version = 1
    private let harness = "onward-conformance"
    private let mode = "server"
    private let subject: SubjectPart
    private let startedAt: String
    private let milliseconds: Int64
    private let exitStatus: Int32
    private let failure: String?
    private let summary: [String: Int]
    private let cases: [CasePart]

    package init(_ report: RunReport, strict: Bool) {
        subject = SubjectPart(
            url: report.url, method: report.method, profile: report.base.word, profiles: report.spoken.map(\.word),
            sends104: report.announces, limits: report.limits, download: report.download)
        startedAt = Date(timeIntervalSince1970: Double(report.beganAt)).formatted(.iso8601)
        milliseconds = report.milliseconds
        exitStatus = report.exitStatus(strict: strict)
        failure = report.failure
        summary = Dictionary(uniqueKeysWithValues: Outcome.words.map { ($0, report.count($0)) })
        cases = report.results.map(CasePart.init)
    }

    private struct SubjectPart: Encodable {
        let url: String
        let method: String
        let profile: String
        let profiles: [String]
        let sends104: Bool
        let limits: [String: Int64]
        let download: String?
    }

    struct CasePart: Encodable {
        let id: String
        let level: String
        let section: String
        let requirement: String
        let covers: [String]
        let outcome: String
        var expected: String?
        var seen: String?
        /// Why it was skipped, by which case it was blocked, or what went wrong in the harness.
        var reason: String?
        let notes: [String]
        let milliseconds: Int64
        let command: String?
        let transcript: [EntryPart]?
        let omittedEvents: Int?

        init(_ result: CaseResult) {
            id = result.subject.id
            level = result.subject.level.rawValue
            section = result.subject.section
            requirement = result.subject.requirement
            covers = result.subject.covers
            outcome = result.outcome.word
            switch result.outcome {
            case .pass: break
            case .fail(let finding), .warn(let finding), .setup(let finding):
                expected = finding.expected
                seen = finding.seen
            case .skipped(let text), .blocked(let text), .harness(let text): reason = text
            }
            notes = result.notes
            milliseconds = result.milliseconds
            command = result.command
            transcript = result.transcript.isEmpty ? nil : result.transcript.map(EntryPart.init)
            omittedEvents = result.omittedEvents == 0 ? nil : result.omittedEvents
        }
    }

    struct EntryPart: Encodable {
        let microseconds: Int64
        let connection: Int
        /// `sent`, `received` or `note`.
        let kind: String
        /// Bytes outside of printable ASCII as escapes of C.
        let text: String
        let omittedBytes: Int?

        init(_ entry: Transcript.Entry) {
            microseconds = entry.time
            connection = entry.connection
            switch entry.event {
            case .note(let note): (kind, text, omittedBytes) = ("note", note, nil)
            case .sent(let bytes, let omitted):
                (kind, text, omittedBytes) = ("sent", TranscriptText.escaped(bytes), omitted == 0 ? nil : omitted)
            case .received(let bytes, let omitted):
                (kind, text, omittedBytes) = ("received", TranscriptText.escaped(bytes), omitted == 0 ? nil : omitted)
            }
        }
    }
}
