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
