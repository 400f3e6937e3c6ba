/// How many bytes the content of one request has at most, and at least if more follow (draft section 4.1.4).
struct ContentBound: Sendable, Hashable {
    /// `nil`: no bound.
    let maxCount: Int64?
    let minCount: Int64

    /// - Parameters:
    ///   - own: the caller's bound.
    ///   - learned: what refusals taught.
    init(own: Int64?, learned: Int64?, limits: UploadLimits) {
        let server = [limits.maxAppendSize, learned].compactMap { $0 }.min()
        let minCount = min(limits.minAppendSize ?? 0, server ?? .max)
        // The server's minimum is a demand; the caller's bound is a wish.
        let requested = own.map { max($0, minCount) }
        self.minCount = minCount
        maxCount = [server, requested].compactMap { $0 }.min().map { max(1, $0) }
    }

    /// How many of `remaining` bytes the next request takes; all of them, or not less than the minimum.
    func share(of remaining: Int64) -> Int64 {
        maxCount.map { min($0, remaining) } ?? remaining
    }

    /// The bound after content of `count` bytes was too large: at most half of it. `nil`: that must not be.
    func below(_ count: Int64) -> Int64? {
        let half = max(count / 2, minCount)
        return half >= 1 && half < count ? half : nil
    }
}
