/// An expectation of a case that does not hold.
struct Unmet: Error {
    let finding: Finding

    init(_ expected: String, seen: String) { finding = Finding(expected: expected, seen: seen) }
}

/// The subject does not offer what a case is about.
struct NotOffered: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// What has to precede the question of a case did not work.
struct SetupFailure: Error {
    let finding: Finding
}
