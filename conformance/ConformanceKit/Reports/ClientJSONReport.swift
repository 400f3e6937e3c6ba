import FoundationEssentials

/// The JSON report of a run of the client mode. Its schema is as stable as that of ``JSONReport``.
package struct ClientJSONReport: JSONDocument {
    private let version = 1
    private let harness = "onward-conformance"
    private let mode = "client"
    private let subject: SubjectPart
    private let startedAt: String
    private let milliseconds: Int64
    private let exitStatus: Int32
    private let failure: String?
    private let summary: [String: Int]
    private let cases: [JSONReport.CasePart]
    /// The traffic of each scenario, by its ID.
    private let traffic: [String: Traffic]

    private struct SubjectPart: Encodable {
        let command: String?
        let getCommand: String?
        let seed: UInt64
    }

    package init(_ report: ClientReport, strict: Bool) {
        subject = SubjectPart(
            command: report.uploadCommand, getCommand: report.downloadCommand, seed: report.seed)
        startedAt = Date(timeIntervalSince1970: Double(report.beganAt)).formatted(.iso8601)
        milliseconds = report.milliseconds
        exitStatus = report.exitStatus(strict: strict)
        failure = report.failure
        summary = Dictionary(uniqueKeysWithValues: Outcome.words.map { ($0, report.count($0)) })
        cases = report.results.map(JSONReport.CasePart.init)
        traffic = report.traffic
    }
}
