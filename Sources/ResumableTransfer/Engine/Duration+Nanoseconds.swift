extension Duration {
    /// In whole nanoseconds; what does not fit is a century.
    var nanoseconds: Int64 {
        let century = 3_155_760_000.0 * 1e9
        return Int64(min(max(self / .nanoseconds(1), 0), century))
    }
}
