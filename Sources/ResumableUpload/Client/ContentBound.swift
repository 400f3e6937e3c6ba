/// The maximum content of one request in bytes, and its minimum if more content follows (draft section 4.1.4).
struct ContentBound: Sendable, Hashable {
    /// `nil`: no bound.
    let maxCount: Int64?
    let minCount: Int64

    /// - Parameters:
    ///   - own: the caller's bound.
    ///   - learned: the bound learned from rejected requests.
    init(own: Int64?, learned: Int64?, limits: UploadLimits) {
        let server = [limits.maxAppendSize, learned].compactMap { $0 }.min()
        let minCount = min(limits.minAppendSize ?? 0, server ?? .max)
        // The server's minimum is required, so it overrides the caller's bound.
        let requested = own.map { max($0, minCount) }
        self.minCount = minCount
        maxCount = [server, requested].compactMap { $0 }.min().map { max(1, $0) }
    }

    /// The number of `remaining` bytes that the next request has: all of them, or at least the minimum.
    func share(of remaining: Int64) -> Int64 {
        maxCount.map { min($0, remaining) } ?? remaining
    }

    /// The bound after content of `count` bytes was too large: at most half of it. `nil` if that is not allowed.
    func below(_ count: Int64) -> Int64? {
        let half = max(count / 2, minCount)
        return half >= 1 && half < count ? half : nil
    }
}
