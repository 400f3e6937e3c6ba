/// The line that shows the progress of a transfer, shortened to the width of the terminal.
struct ProgressLine: Sendable, Hashable {
    var name: String
    /// The number of transferred bytes.
    var done: Int64
    /// The size in bytes; `nil` while it is unknown.
    var total: Int64?
    /// The rate in bytes per second; `nil` while it is unknown.
    var rate: Double?
    /// The reason why the transfer waits. It replaces the rate and the time left.
    var note: String?

    /// The line with at most this number of columns. If it is too long, parts are left out in this order: the bar, the
    /// time left, the rate, the bytes, the name.
    func text(columns: Int) -> String {
        let minNameWidth = min(DisplayText.width(name), 16)
        for parts in candidates {
            let remainder = parts.joined(separator: "  ")
            let room = columns - DisplayText.width(remainder) - 2
            guard room >= minNameWidth else { continue }
            let shown = DisplayText.truncated(name, to: min(room, 60))
            return shown + bar(columns - DisplayText.width(shown)) + "  " + remainder
        }
        return DisplayText.truncated(share, to: columns)
    }

    /// The complete line without the bar, for output that is not a terminal.
    var plainText: String { name + "  " + candidates[0].joined(separator: "  ") }

    /// The possible parts of the line, the most complete list first.
    private var candidates: [[String]] {
        let bytes = total.map { "\(Amount.bytes(done)) of \(Amount.bytes($0))" } ?? Amount.bytes(done)
        let speed = note ?? rate.map { Amount.rate($0) } ?? "-- B/s"
        let full = note == nil ? [share, bytes, speed, timeLeft] : [share, bytes, speed]
        return [full, [share, bytes, speed], [share, bytes], [share]].map { parts in parts.filter { !$0.isEmpty } }
    }

    private var share: String {
        guard let total else { return "" }
        let text = "\(Amount.share(done, of: total))"
        return String(repeating: " ", count: max(0, 3 - text.count)) + text + " %"
    }

    private var timeLeft: String {
        guard let total else { return "" }
        guard let rate, rate >= 1 else { return "-- left" }
        return Amount.duration(Double(max(0, total - done)) / rate) + " left"
    }

    /// A bar for wide windows.
    /// - Parameter room: the number of columns after the name. The bar leaves enough of them for the longest numbers,
    ///   so that its length does not change.
    private func bar(_ room: Int) -> String {
        let length = min(room - 64, 60)
        guard let total, length >= 16 else { return "" }
        let filled = Amount.share(done, of: total) * length / 100
        return "  [" + String(repeating: "#", count: filled) + String(repeating: ".", count: length - filled) + "]"
    }
}
