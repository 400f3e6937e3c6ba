/// How far a transfer is: 0 ≤ `completed` ≤ `total` at any time, whatever it is updated with.
struct ByteCounts: Sendable, Hashable {
    /// The units into which a transfer of any size is divided for `Progress`. As a power of two it keeps the fractions small
    /// that a parent computes of many children.
    static let units: Int64 = 1 << 30

    private(set) var completed: Int64 = 0
    /// `nil` while it is not known.
    private(set) var total: Int64?
    /// Whether the transfer has succeeded; it stays so.
    private(set) var isFinished = false

    init(total: Int64?) {
        update(completed: 0, total: total)
    }

    mutating func update(completed: Int64, total: Int64?) {
        guard !isFinished else { return }
        self.total = total.map { max($0, 0) }
        self.completed = min(max(completed, 0), self.total ?? .max)
    }

    mutating func finish() {
        completed = total ?? completed
        total = completed
        isFinished = true
    }

    /// The share of ``units`` that is done. It is all of them only once the transfer has succeeded: a parent counts a child
    /// that is finished as done for ever.
    var completedUnits: Int64 {
        if isFinished { return Self.units }
        guard let total, total > 0 else { return 0 }
        let share = Double(completed) / Double(total) * Double(Self.units)
        return min(Int64(share), Self.units - 1)
    }
}
