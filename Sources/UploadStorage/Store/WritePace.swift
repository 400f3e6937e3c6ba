/// The progress of the bytes of one upload to the disk, as a value.
struct WritePace: Hashable {
    /// The number of free bytes that are reserved for the catalog.
    static let catalogRoom: Int64 = 64 << 20
    /// Bytes that are handed to the disk at once.
    static let step: Int64 = 4 << 20
    private static let spaceStep: Int64 = 4 << 20

    /// The offset up to which bytes may be written before the free space is checked again.
    private(set) var spaceCheckedUpTo: Int64 = 0
    private var started: Int64
    private var awaited: Int64

    /// - Parameter start: bytes that are durable already.
    init(start: Int64 = 0) {
        started = start
        awaited = start
    }

    /// The space up to `end` is there.
    /// - Parameter spare: free bytes above those that have to stay free; the fewer, the sooner they are looked at again.
    mutating func spaceChecked(upTo end: Int64, spare: Int64) {
        spaceCheckedUpTo = end + min(Self.spaceStep, spare / 4)
    }

    func isDue(_ written: Int64) -> Bool { written - started >= Self.step }

    /// The bytes to hand to the disk now; nil if there are too few.
    mutating func start(_ written: Int64) -> Range<Int64>? {
        guard isDue(written) else { return nil }
        defer { started = written }
        return started..<written
    }

    /// Where the part begins that has to leave the cache before more is received; nil while the window is not full.
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
