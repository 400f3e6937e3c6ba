/// How often values were at most as large as certain bounds, as Prometheus counts them.
struct Histogram: Sendable, Hashable {
    /// Ascending.
    let bounds: [Double]
    /// Values within each bound and beyond the one before it; those beyond the last are in `count` alone.
    private(set) var counts: [Int]
    private(set) var count = 0
    private(set) var sum = 0.0

    init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count)
    }

    /// Seconds that a step to stable storage may take, from a fast disk to one that fails.
    static let storageSeconds = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]

    mutating func observe(_ value: Double) {
        count += 1
        sum += value
        if let place = bounds.firstIndex(where: { value <= $0 }) { counts[place] += 1 }
    }

    /// For each bound how many values are within it.
    var cumulative: [(bound: Double, count: Int)] {
        var total = 0
        return zip(bounds, counts).map { bound, count in
            total += count
            return (bound, total)
        }
    }
}
