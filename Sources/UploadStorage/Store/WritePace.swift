/// Decides when the free space is checked for the bytes of one upload, when their write-back to the disk starts, and
/// when the receiving thread has to wait for it.
struct WritePace: Hashable {
    /// The number of free bytes that are reserved for the catalog.
    static let catalogRoom: Int64 = 64 << 20
    /// The number of bytes whose write-back starts, or is awaited, together.
    static let step: Int64 = 4 << 20
    private static let spaceStep: Int64 = 4 << 20

    /// The offset up to which bytes may be written before the free space is checked again.
    private(set) var spaceCheckedUpTo: Int64 = 0
    /// The offset up to which the write-back has started.
    private var started: Int64
    /// The offset up to which the end of the write-back was awaited.
    private var awaited: Int64

    /// - Parameter start: the number of bytes that are durable already.
    init(start: Int64 = 0) {
        started = start
        awaited = start
    }

    /// Records that there is enough space for bytes up to `end`.
    /// - Parameter spare: the number of free bytes minus the number that must stay free. The smaller it is, the sooner
    ///   the space is checked again.
    mutating func spaceChecked(upTo end: Int64, spare: Int64) {
        spaceCheckedUpTo = end + min(Self.spaceStep, spare / 4)
    }

    /// Returns whether the write-back of the next bytes should start.
    /// - Parameter written: the number of bytes that are written to the file.
    func isDue(_ written: Int64) -> Bool { written - started >= Self.step }

    /// Returns the range of bytes whose write-back starts now; nil if there are too few bytes.
    mutating func start(_ written: Int64) -> Range<Int64>? {
        guard isDue(written) else { return nil }
        defer { started = written }
        return started..<written
    }

    /// Returns the start of the part whose write-back must end before more bytes are received; nil if at most `window`
    /// bytes are not on the disk yet.
    func excess(_ written: Int64, durable: Int64, window: Int64) -> Int64? {
        let start = max(awaited, durable)
        return written - start > window ? start : nil
    }

    /// Records that the write-back of the part that begins at `start` has ended.
    mutating func awaited(from start: Int64) { awaited = start + Self.step }

    /// Adjusts the values after bytes beyond `end` were removed.
    mutating func limit(to end: Int64) {
        started = min(started, end)
        awaited = min(awaited, end)
    }
}
