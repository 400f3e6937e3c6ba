import Digests
import HTTPSemantics
import Synchronization

/// A counter that any thread can increase.
final class Counter: Sendable {
    private let count = Atomic(0)
    func add() { count.add(1, ordering: .sequentiallyConsistent) }
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
}

/// Whether a condition becomes true within a minute.
func happens(_ condition: () -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while !condition() {
        if .now >= end { return false }
        try await Task.sleep(for: .milliseconds(1))
    }
    return true
}

/// The digest of all bytes.
func digest(_ bytes: [UInt8], _ algorithm: Algorithm = .sha256) -> [UInt8] {
    var digest = RunningDigest(algorithm)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.finalized()
}

func digest(_ text: String, _ algorithm: Algorithm = .sha256) -> [UInt8] { digest(Array(text.utf8), algorithm) }
