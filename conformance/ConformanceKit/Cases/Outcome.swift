/// A difference between expected and observed behavior.
package struct Finding: Sendable, Hashable {
    package let expected: String
    package let seen: String
}

/// How a case ended.
package enum Outcome: Sendable, Hashable {
    case pass
    /// A MUST is not met.
    case fail(Finding)
    /// A SHOULD is not met, or an optional feature is implemented incorrectly.
    case warn(Finding)
    /// The subject does not offer the feature that the case tests.
    case skipped(String)
    /// A case on which this case depends did not pass.
    case blocked(by: String)
    /// The preparation of the case failed.
    case setup(Finding)
    /// An internal error of the harness.
    case harness(String)

    /// The name of the outcome in reports, which is stable.
    package var word: String {
        switch self {
        case .pass: "pass"
        case .fail: "fail"
        case .warn: "warn"
        case .skipped: "skipped"
        case .blocked: "blocked"
        case .setup: "setup"
        case .harness: "harness"
        }
    }

    package static let words = ["pass", "fail", "warn", "skipped", "blocked", "setup", "harness"]

    /// Whether cases that depend on a case with this outcome are not run.
    var isBlocking: Bool {
        switch self {
        case .fail, .setup, .blocked, .harness: true
        case .pass, .warn, .skipped: false
        }
    }
}

/// The result of a case.
package struct CaseResult: Sendable {
    package let info: CaseInfo
    package let outcome: Outcome
    /// Notes that the case added to its report.
    package let notes: [String]
    /// The transcript of the connections; empty if the case passed or did not run.
    let transcript: [Transcript.Entry]
    /// The number of events that exceeded the size of the transcript.
    let omittedEvents: Int
    /// A curl command that repeats the last request; `nil` if curl cannot send it.
    package let command: String?
    package let milliseconds: Int64
}

extension Outcome {
    /// One line with the reason why the case did not pass; `nil` if it passed.
    var summary: String? {
        switch self {
        case .pass: nil
        case .fail(let finding), .warn(let finding): "expected \(finding.expected), seen: \(finding.seen)"
        case .skipped(let reason): "skipped: \(reason)"
        case .blocked(let id): "blocked: \(id) did not pass"
        case .setup(let finding): "not verified: expected \(finding.expected), seen: \(finding.seen)"
        case .harness(let text): "internal error of the harness: \(text)"
        }
    }
}

/// An expectation of a case is not met.
struct Unmet: Error {
    let finding: Finding

    init(_ expected: String, seen: String) { finding = Finding(expected: expected, seen: seen) }
}

/// The subject does not offer the feature that a case tests.
struct NotOffered: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// The preparation of a case failed.
struct SetupFailure: Error {
    let finding: Finding
}
