import FoundationEssentials

/// The results of a run of the proxy mode.
package struct ProxyReport: Sendable {
    package let url: String
    /// Whether the harness was the upstream; false if a deployed server was.
    package let hasUpstream: Bool
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let findings: [ProxyFinding]
    /// The conclusion; `nil` if the proxy could not be verified.
    package let verdict: ProxyVerdict?
    /// The reason why the proxy could not be verified.
    package let failure: String?

    /// Returns 0 if uploads work, possibly with settings, 1 if they do not work, and 2 if the proxy could not be verified.
    package var exitStatus: Int32 {
        guard let verdict else { return 2 }
        return verdict.usability == .unusable ? 1 : 0
    }

    /// The JSON document, with sorted keys and a final newline.
    package func json() throws -> Data { try Document(self).data() }

    private struct Document: JSONDocument {
        struct Finding: Encodable {
            let id: String
            let title: String
            let grade: String
            let answer: String
        }

        let version = 1
        let harness = "onward-conformance"
        let mode = "proxy"
        let url: String
        let upstream: Bool
        let startedAt: String
        let milliseconds: Int64
        let exitStatus: Int32
        let failure: String?
        let findings: [Finding]
        let usability: String?
        let settings: [String]

        init(_ report: ProxyReport) {
            url = report.url
            upstream = report.hasUpstream
            startedAt = Date(timeIntervalSince1970: Double(report.beganAt)).formatted(.iso8601)
            milliseconds = report.milliseconds
            exitStatus = report.exitStatus
            failure = report.failure
            findings = report.findings.map {
                Finding(id: $0.id, title: $0.title, grade: $0.grade.rawValue, answer: $0.answer)
            }
            usability = report.verdict?.usability.rawValue
            settings = report.verdict?.settings ?? []
        }
    }
}

/// The result of one check of a proxy.
package struct ProxyFinding: Sendable {
    /// The effect of the behavior on uploads.
    package enum Grade: String, Sendable {
        case good
        /// Uploads work, but less well, or only within a limit; a setting may help.
        case poor
        /// Uploads fail, or incomplete content looks complete; a setting may correct this.
        case bad
        /// The finding is information, or the check could not be made.
        case neutral
    }

    /// A stable ID, such as `interim`.
    package let id: String
    /// The title of the check.
    package let title: String
    package let grade: Grade
    /// A description of the behavior.
    package let answer: String
    let transcript: [Transcript.Entry]
    let omittedEvents: Int
}
