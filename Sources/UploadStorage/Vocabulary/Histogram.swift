/// A histogram as in Prometheus: the number of values up to each bound.
package struct Histogram: Sendable, Hashable {
    /// The bounds in ascending order.
    package let bounds: [Double]
    /// The number of values up to each bound and above the previous bound. Values above the last bound are only in
    /// `count`.
    package private(set) var counts: [Int]
    package private(set) var count = 0
    package private(set) var sum = 0.0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count)
    }

    /// Bounds in seconds for the durations of synchronization, from those of fast disks to those of failing disks.
    package static let storageSeconds = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]

    /// Bounds in seconds for the time until an application responds, or until a check has ended.
    package static let responseSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

    package mutating func observe(_ value: Double) {
        count += 1
        sum += value
        if let place = bounds.firstIndex(where: { value <= $0 }) { counts[place] += 1 }
    }

    /// The number of values up to each bound.
    package var cumulative: [(bound: Double, count: Int)] {
        var total = 0
        return zip(bounds, counts).map { bound, count in
            total += count
            return (bound, total)
        }
    }
}
