/// The progress of the bytes of one upload to the disk, as a value.
struct WritePace: Hashable {
    /// The number of free bytes that are reserved for the catalog.
    static let catalogRoom: Int64 = 64 << 20
    /// The number of bytes that are passed to the disk together.
    static let step: Int64 = 4 << 20
    private static let spaceStep: Int64 = 4 << 20

    /// The offset up to which bytes may be written before the free space is checked again.
    private(set) var spaceCheckedUpTo: Int64 = 0
    private var started: Int64
    private var awaited: Int64

    /// - Parameter start: the number of bytes that are durable already.
    init(start: Int64 = 0) {
        started = start
        awaited = start
    }

    /// Records that there is enough space for bytes up to `end`.
    /// - Parameter spare: the free bytes in addition to those that must stay free. The fewer there are, the sooner the
    ///   space is checked again.
    mutating func spaceChecked(upTo end: Int64, spare: Int64) {
        spaceCheckedUpTo = end + min(Self.spaceStep, spare / 4)
    }

    func isDue(_ written: Int64) -> Bool { written - started >= Self.step }

    /// The range of bytes to pass to the disk now; nil if there are too few.
    mutating func start(_ written: Int64) -> Range<Int64>? {
        guard isDue(written) else { return nil }
        defer { started = written }
        return started..<written
    }

    /// The start of the part that must be written to the disk before more bytes are received; nil while the window is
    /// not full.
    func excess(_ written: Int64, durable: Int64, window: Int64) -> Int64? {
        let start = max(awaited, durable)
        return written - start > window ? start : nil
    }

    mutating func awaited(from start: Int64) { awaited = start + Self.step }

    /// Adjusts the values after bytes beyond `end` were removed.
    mutating func limit(to end: Int64) {
        started = min(started, end)
        awaited = min(awaited, end)
    }
}
