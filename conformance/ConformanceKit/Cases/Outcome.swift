/// What was wanted and what came.
package struct Finding: Sendable, Hashable {
    package let expected: String
    package let seen: String
}

/// How a case ended.
package enum Outcome: Sendable, Hashable {
    case pass
    /// A MUST is not met.
    case fail(Finding)
    /// A SHOULD is not met, or something optional is done wrongly.
    case warn(Finding)
    /// The subject does not offer what the case is about.
    case skipped(String)
    /// A case that this one needs did not pass.
    case blocked(by: String)
    /// What has to precede the question did not work.
    case setup(Finding)
    /// An internal error of the harness.
    case harness(String)

    /// The stable word of reports.
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

    /// Whether cases that build on this one cannot say anything.
    var blocks: Bool {
        switch self {
        case .fail, .setup, .blocked, .harness: true
        case .pass, .warn, .skipped: false
        }
    }
}

/// A case that was run.
package struct CaseResult: Sendable {
    package let subject: Question
    package let outcome: Outcome
    /// What the case reports besides.
    package let notes: [String]
    /// What went over the wire; empty where nothing has to be proved.
    let transcript: [Transcript.Entry]
    /// Events that the transcript had no room for.
    let omittedEvents: Int
    /// A command that repeats the last request.
    package let command: String?
    package let milliseconds: Int64
}
