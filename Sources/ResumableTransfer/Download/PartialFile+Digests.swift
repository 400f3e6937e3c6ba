import Digests
import SystemCalls

/// The digests that verify the bytes of an earlier run.
extension PartialFile {
    private static let tailSize: Int64 = 64 << 10

    /// SHA-256 of the last 64 KiB before `position`, in hexadecimal; `nil` if `position` is 0.
    func tailDigest(upTo position: Int64) throws(Errno) -> String? {
        guard position > 0 else { return nil }
        return try digest(of: max(0, position - Self.tailSize)..<position)
    }

    /// SHA-256 of the bytes in `range`, in hexadecimal.
    func digest(of range: Range<Int64>) throws(Errno) -> String {
        var digest = RunningDigest(.sha256)
        try update(&digest, with: range)
        return digest.finalized().hexadecimal
    }

    private func update(_ digest: inout RunningDigest, with range: Range<Int64>) throws(Errno) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(range.count, 1 << 20), alignment: 1)
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count > 0 else { throw .inputOutput }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
    }

    // MARK: Bytes that are not on stable storage

    /// The maximum number of bytes after the mark that a digest covers.
    private static let maxSpanLength: Int64 = 256 << 20
    /// The minimum time between two updates of the digest, in nanoseconds.
    private static let spanInterval: Int64 = 250_000_000
    /// An interval in nanoseconds. If the mark moves more often, no digest of the bytes after the mark is needed.
    private static let markInterval: Int64 = 500_000_000

    /// The running digest of the bytes after a mark.
    struct RunningSpan {
        let name: FilePath
        let start: Int64
        var end: Int64
        var digest = RunningDigest(.sha256)
    }

    /// Whether it is time to call ``updateSpan()``.
    func needsSpanUpdate() -> Bool {
        let now = SystemClock.monotonicNanoseconds()
        return state.withLock { state in
            let known = state.mark.span?.end ?? state.mark.position
            let end = min(state.position, state.mark.position + Self.maxSpanLength)
            return state.failure == nil && end > known && now - state.spanUpdatedAt >= Self.spanInterval
                && now - state.synchronizedAt >= Self.markInterval
        }
    }

    /// Computes the digest of the bytes after the mark, so that a later process can verify them. Each byte is read
    /// once.
    func updateSpan() {
        let position = flush()
        let (known, mark) = state.withLock { state in
            state.spanUpdatedAt = SystemClock.monotonicNanoseconds()
            let fresh = RunningSpan(name: state.name, start: state.mark.position, end: state.mark.position)
            let known = state.running.flatMap { $0.name == state.name && $0.start == fresh.start ? $0 : nil }
            return (known ?? fresh, state.mark.position)
        }
        var running = known
        let end = min(position, mark + Self.maxSpanLength)
        guard end > running.end, (try? update(&running.digest, with: running.end..<end)) != nil else { return }
        running.end = end
        let span = Span(end: end, digest: running.digest.finalized().hexadecimal)
        state.withLock { state in
            guard state.name == running.name, state.mark.position == mark else { return }
            state.running = running
            state.mark.span = span
        }
    }
}
