import Digests
import SystemCalls

/// By what bytes that were left are known again.
extension PartialFile {
    private static let tailSize: Int64 = 64 << 10

    /// SHA-256 of the last 64 KiB before `position`, in hexadecimal; `nil` where there is nothing.
    func tailDigest(upTo position: Int64) throws(Errno) -> String? {
        guard position > 0 else { return nil }
        return try digest(of: max(0, position - Self.tailSize)..<position)
    }

    /// SHA-256 in hexadecimal.
    func digest(of range: Range<Int64>) throws(Errno) -> String {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(range.count, 1 << 20), alignment: 1)
        defer { buffer.deallocate() }
        var digest = RunningDigest(.sha256)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count > 0 else { throw .inputOutput }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return digest.finalized().hexadecimal
    }

    // MARK: What is not on stable storage

    /// Bytes behind the mark that are known again at most: so much is read over and over.
    private static let longestSpan: Int64 = 8 << 20
    private static let spanPause: Int64 = 500_000_000

    /// Whether it is time to call ``span()``.
    func needsSpan() -> Bool {
        let now = SystemClock.monotonicNanoseconds()
        return state.withLock { state in
            let known = state.mark.span?.end ?? state.mark.position
            let end = min(state.position, state.mark.position + Self.longestSpan)
            return state.failure == nil && end > known && now - state.spannedAt >= Self.spanPause
        }
    }

    /// Takes the digest of what is behind the mark, so that it is not lost with the process.
    func span() {
        let (name, mark, position) = state.withLock { state in
            state.spannedAt = SystemClock.monotonicNanoseconds()
            return (state.name, state.mark.position, state.position)
        }
        let end = min(position, mark + Self.longestSpan)
        guard end > mark, let digest = try? digest(of: mark..<end) else { return }
        state.withLock { state in
            guard state.name == name, state.mark.position == mark else { return }
            state.mark.span = Span(end: end, digest: digest)
        }
    }
}
