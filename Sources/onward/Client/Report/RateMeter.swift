/// How fast a position moves, over the last seconds.
struct RateMeter: Sendable {
    private static let window = 8.0

    /// Seconds and bytes, oldest first.
    private var samples: [(time: Double, position: Int64)] = []

    /// - Parameter time: in seconds, of a clock that never goes back.
    mutating func note(_ position: Int64, at time: Double) {
        if let last = samples.last {
            // Bytes that have to be sent again are not negative speed.
            if position < last.position { samples = [] }
            if time - last.time < 0.05, samples.count > 1 { samples.removeLast() }
        }
        samples.append((time, position))
        // The last one before the window stays, as its beginning.
        while samples.count > 2, samples[1].time <= time - Self.window { samples.removeFirst() }
    }

    /// Bytes a second; `nil` while too little is known.
    func rate(at time: Double) -> Double? {
        guard let first = samples.first, let last = samples.last, time - first.time >= 0.3 else { return nil }
        return Double(last.position - first.position) / max(time - first.time, 0.001)
    }

    mutating func reset() { samples = [] }
}
