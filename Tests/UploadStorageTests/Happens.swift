/// Whether a condition becomes true within a minute.
func happens(_ condition: () -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while !condition() {
        if .now >= end { return false }
        try await Task.sleep(for: .milliseconds(1))
    }
    return true
}
