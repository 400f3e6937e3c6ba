import FoundationEssentials

/// The JSON report of a run. `version` is the version of its schema. New members can be added to the schema without a new
/// version.
package struct JSONReport<Subject: Encodable>: JSONDocument {
    private let version = 1
    private let harness = "onward-conformance"
    private let mode: String
    private let subject: Subject
    private let startedAt: String
    private let milliseconds: Int64
    private let exitStatus: Int32
    private let failure: String?
    private let summary: [String: Int]
    private let cases: [CasePart]
    /// The traffic of each scenario of the client mode, by its ID.
    private let traffic: [String: Traffic]?

    private init(_ report: some CaseReport, of subject: Subject, traffic: [String: Traffic]? = nil, strict: Bool) {
        mode = report.role
        self.subject = subject
        startedAt = Date(timeIntervalSince1970: Double(report.beganAt)).formatted(.iso8601)
        milliseconds = report.milliseconds
        exitStatus = report.exitStatus(strict: strict)
        failure = report.failure
        summary = Dictionary(uniqueKeysWithValues: Outcome.words.map { ($0, report.count($0)) })
        cases = report.results.map(CasePart.init)
        self.traffic = traffic
    }
}

/// The tested server.
package struct ServerPart: Encodable {
    fileprivate let url: String
    fileprivate let method: String
    fileprivate let profile: String
    fileprivate let profiles: [String]
    fileprivate let sends104: Bool?
    fileprivate let limits: [String: Int64]
    fileprivate let download: String?
}

/// The tested client.
package struct ClientPart: Encodable {
    fileprivate let command: String?
    fileprivate let getCommand: String?
    fileprivate let seed: UInt64
}

extension JSONReport<ServerPart> {
    package init(_ report: RunReport, strict: Bool) {
        self.init(
            report,
            of: ServerPart(
                url: report.url, method: report.method, profile: report.base.word,
                profiles: report.supportedProfiles.map(\.word), sends104: report.isAnnouncing, limits: report.limits,
                download: report.download),
            strict: strict)
    }
}

extension JSONReport<ClientPart> {
    package init(_ report: ClientReport, strict: Bool) {
        self.init(
            report,
            of: ClientPart(
                command: report.uploadCommand, getCommand: report.downloadCommand, seed: report.seed),
            traffic: report.traffic, strict: strict)
    }
}

/// The result of a case.
private struct CasePart: Encodable {
    let id: String
    let level: String
    let section: String
    let requirement: String
    let covers: [String]
    let outcome: String
    var expected: String?
    var seen: String?
    /// The reason why the case was skipped, the ID of the case that blocks it, or the internal error.
    var reason: String?
    let notes: [String]
    let milliseconds: Int64
    let command: String?
    let transcript: [EntryPart]?
    let omittedEvents: Int?

    init(_ result: CaseResult) {
        id = result.info.id
        level = result.info.level.rawValue
        section = result.info.section
        requirement = result.info.requirement
        covers = result.info.covers
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

/// An event of a transcript.
private struct EntryPart: Encodable {
    let microseconds: Int64
    let connection: Int
    /// `sent`, `received` or `note`.
    let kind: String
    /// The bytes; those outside printable ASCII are escaped as in C.
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

/// A report as JSON.
package protocol JSONDocument: Encodable {}

extension JSONDocument {
    /// The JSON document, with sorted keys and a final newline.
    package func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data([UInt8(ascii: "\n")])
    }
}
