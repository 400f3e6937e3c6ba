/// Tells whether bytes move more slowly than they have to, on the average of one window after the other.
struct RateWindow: Sendable {
    /// Where the present window began; `nil`: it begins with the next look.
    private var start: (bytes: Int64, nanoseconds: Int64)?

    /// - Parameters:
    ///   - bytes: moved so far.
    ///   - nanoseconds: in which the peer could have moved them so far.
    ///   - minimum: bytes a second.
    ///   - length: of a window, in seconds.
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
