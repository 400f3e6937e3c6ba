extension Outcome {
    /// One line on why it is not a pass; `nil` where it is.
    var summary: String? {
        switch self {
        case .pass: nil
        case .fail(let finding), .warn(let finding): "expected \(finding.expected), seen: \(finding.seen)"
        case .skipped(let reason): "skipped: \(reason)"
        case .blocked(let id): "blocked by \(id)"
        case .setup(let finding): "not verified: expected \(finding.expected), seen: \(finding.seen)"
        case .harness(let text): "a fault of this harness: \(text)"
        }
    }
}
