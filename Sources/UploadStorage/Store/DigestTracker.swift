import Digests
import HTTPSemantics
import Synchronization
import SystemCalls

/// Digests of the bytes of one blob from `base` on, which are advanced while bytes are received.
///
/// Only one thread at a time advances them. This thread works on a copy, without holding the lock.
final class DigestTracker: Sendable {
    private struct State {
        var digests: [DigestAlgorithm: RunningDigest]
        var isAdvancing = false
    }

    /// The tracker of all uploads that need no digest.
    static let none = DigestTracker([])

    private static let pieceSize = 256 << 10

    let base: Int64
    let isEmpty: Bool
    /// Whether a thread has been scheduled to advance the digests. That thread sets this to false.
    let isScheduled = Atomic(false)
    private let coveredMirror: Atomic<Int64>
    private let state: Monitor<State>

    /// - Parameters:
    ///   - states: encoded states to start from, each used only if it covers no more than `limit` bytes.
    init(_ algorithms: Set<DigestAlgorithm>, base: Int64 = 0, states: [[UInt8]] = [], limit: Int64 = 0) {
        self.base = base
        isEmpty = algorithms.isEmpty
        var digests: [DigestAlgorithm: RunningDigest] = [:]
        for algorithm in algorithms { digests[algorithm] = RunningDigest(algorithm.hash) }
        for encoded in states {
            guard let digest = RunningDigest(encodedState: encoded), digest.count <= UInt64(max(0, limit)),
                let algorithm = algorithms.first(where: { $0.hash == digest.algorithm })
            else { continue }
            digests[algorithm] = digest
        }
        coveredMirror = Atomic(Self.covered(digests))
        state = Monitor(State(digests: digests))
    }

    private static func covered(_ digests: [DigestAlgorithm: RunningDigest]) -> Int64 {
        Int64(clamping: digests.values.map(\.count).min() ?? 0)
    }

    /// The current states, encoded, in a stable order.
    var encodedStates: [[UInt8]] {
        state.withLock { state in
            state.digests.sorted { $0.key.rawValue < $1.key.rawValue }.map { $0.value.encodedState() }
        }
    }

    /// The offset in the blob up to which all digests are computed.
    var covered: Int64 { base + coveredMirror.load(ordering: .acquiring) }

    /// Adds the bytes of `blob` up to the offset `end` to the digests; stops after about `budget` bytes.
    func advance(over blob: any Blob, to end: Int64, budget: Int64 = .max) throws(Errno) {
        var digests = state.waitForever { state -> [DigestAlgorithm: RunningDigest]? in
            if state.isAdvancing { return nil }
            state.isAdvancing = true
            return state.digests
        }
        defer {
            state.withLock { state in
                state.digests = digests
                state.isAdvancing = false
                coveredMirror.store(Self.covered(digests), ordering: .releasing)
            }
            state.notifyAll()
        }
        try Self.advance(&digests, over: blob, base: base, to: end, budget: budget)
    }

    /// The digest of the bytes from `base` to `end`. Reads only the bytes that were not digested yet.
    func digest(_ algorithm: DigestAlgorithm, of blob: any Blob, to end: Int64) throws(Errno) -> [UInt8] {
        try advance(over: blob, to: end)
        if let digest = state.withLock({ $0.digests[algorithm] }) { return digest.finalized() }
        var digests = [algorithm: RunningDigest(algorithm.hash)]
        try Self.advance(&digests, over: blob, base: base, to: end, budget: .max)
        return digests[algorithm]?.finalized() ?? []
    }

    private static func advance(
        _ digests: inout [DigestAlgorithm: RunningDigest], over blob: any Blob, base: Int64, to end: Int64,
        budget: Int64
    ) throws(Errno) {
        guard !digests.isEmpty else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize, alignment: 64)
        defer { buffer.deallocate() }
        var left = budget
        while left > 0 {
            // The digests that cover the fewest bytes are advanced first. Once all digests cover the same bytes, each
            // piece is read only once.
            let counts = digests.values.map { Int64(clamping: $0.count) }
            let start = counts.min() ?? 0
            let stop = min(end - base, counts.filter { $0 > start }.min() ?? .max)
            let count = Int(min(stop - start, Int64(pieceSize)))
            if count <= 0 { return }
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            // If the file is shorter than the received bytes, another program truncated it, or the disk lost data.
            guard try blob.read(into: piece, at: base + start) == count else { throw .inputOutput }
            for algorithm in digests.keys where digests[algorithm]?.count == UInt64(start) {
                digests[algorithm]?.update(UnsafeRawBufferPointer(piece))
            }
            left -= Int64(count)
        }
    }
}

extension DigestAlgorithm {
    package var hash: Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}
