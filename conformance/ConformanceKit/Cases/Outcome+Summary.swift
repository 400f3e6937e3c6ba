extension Outcome {
    /// One line with the reason why the case did not pass; nil if it passed.
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
