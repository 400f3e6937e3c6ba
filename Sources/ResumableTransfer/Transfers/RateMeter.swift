/// Measures the rate at which a count of bytes grows, over the last seconds.
package struct RateMeter: Sendable {
    private static let window: Int64 = 8_000_000_000
    /// The minimum time for a useful rate.
    private static let minimumTime: Int64 = 300_000_000
    private static let sampleInterval: Int64 = 50_000_000

    private struct Sample {
        /// Monotonic nanoseconds.
        let time: Int64
        let count: Int64
    }

    /// Oldest first. The first sample is the last one before the window, or the beginning.
    private var samples: [Sample] = []

    package init() {}

    /// - Parameters:
    ///   - count: the number of bytes so far, which never decreases.
    ///   - time: monotonic nanoseconds.
    package mutating func note(_ count: Int64, at time: Int64) {
        if let last = samples.last, time - last.time < Self.sampleInterval, samples.count > 1 { samples.removeLast() }
        samples.append(Sample(time: time, count: count))
        let start = time - Self.window
        if samples.count > 2, samples[1].time <= start {
            samples.removeFirst(max((samples.firstIndex { $0.time > start } ?? samples.count) - 1, 0))
        }
    }

    /// The rate in bytes per second; `nil` while the time since the first note is too short.
    /// - Parameter time: monotonic nanoseconds.
    package func rate(at time: Int64) -> Double? {
        guard let first = samples.first, let last = samples.last, time - first.time >= Self.minimumTime
        else { return nil }
        let start = time - Self.window
        // A sample before the window counts as one at its beginning: the bytes after it were noted later.
        let base = samples.last { $0.time <= start } ?? first
        return Double(last.count - base.count) * 1e9 / Double(time - max(base.time, start))
    }

    package mutating func reset() { samples = [] }
}
