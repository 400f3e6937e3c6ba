import SystemCalls

/// Memory for content from its receipt until it is stored.
///
/// All connections share a few large buffers. The buffer that was used last is used again first, so that it is in the
/// cache of the processor. While all of them are in use, content is received in smaller pieces: the disk is slow, or the
/// processors are busy, and have interrupted many threads that use a buffer.
final class ContentBuffers: Sendable {
    static let shared = ContentBuffers(count: 16, size: 512 << 10)

    private struct State {
        var unused: [UnsafeMutableRawBufferPointer] = []
        var allocated = 0
    }

    private static let smallSize = 64 << 10

    private let count: Int
    private let size: Int
    private let state: Monitor<State>

    init(count: Int, size: Int) {
        self.count = count
        self.size = size
        state = Monitor(State())
    }

    deinit { state.withLock { for buffer in $0.unused { buffer.deallocate() } } }

    /// Calls `body` with a buffer, whose content is undefined.
    func withBuffer<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        guard let buffer = largeBuffer() else {
            return withUnsafeTemporaryAllocation(byteCount: Self.smallSize, alignment: 64, body)
        }
        defer { state.withLock { $0.unused.append(buffer) } }
        return body(buffer)
    }

    private func largeBuffer() -> UnsafeMutableRawBufferPointer? {
        state.withLock { state in
            if let buffer = state.unused.popLast() { return buffer }
            if state.allocated == count { return nil }
            state.allocated += 1
            return .allocate(byteCount: size, alignment: 4096)
        }
    }
}
