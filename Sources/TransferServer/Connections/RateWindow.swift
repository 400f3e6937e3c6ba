/// Checks whether the average rate in consecutive windows is below a minimum.
struct RateWindow: Sendable {
    /// The start of the current window; `nil` if a window starts with the next call.
    private var start: (bytes: Int64, nanoseconds: Int64)?

    /// - Parameters:
    ///   - bytes: the bytes transferred so far.
    ///   - nanoseconds: the time so far in which the peer could transfer them.
    ///   - minimum: bytes per second.
    ///   - length: the length of a window in seconds.
    mutating func isTooSlow(bytes: Int64, nanoseconds: Int64, minimum: Int64, length: Int64) -> Bool {
        guard let begun = start else {
            start = (bytes, nanoseconds)
            return false
        }
        guard nanoseconds - begun.nanoseconds >= length * 1_000_000_000 else { return false }
        start = (bytes, nanoseconds)
        let (wanted, overflow) = minimum.multipliedReportingOverflow(by: length)
        return overflow || bytes - begun.bytes < wanted
    }
}
