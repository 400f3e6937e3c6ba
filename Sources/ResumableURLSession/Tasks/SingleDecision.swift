import Synchronization

/// Of several calls the first one counts.
final class SingleDecision: Sendable {
    private let isTaken = Atomic(false)

    func isFirst() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }
}
