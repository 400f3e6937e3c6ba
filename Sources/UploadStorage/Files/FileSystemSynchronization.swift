/// The decision whether files are synchronized together, with all changes of their file system, instead of each on its
/// own.
///
/// One call for the file system is much faster than one for each file, unless there is much to write that does not
/// belong to these files: content of large uploads, or of other programs. Then it may take many seconds. So once a call
/// is slow, later files do not wait for it, and a pause follows it. A pause also follows a call that has failed: the
/// failed write may be one of another program, which the next call would report, too. A trial, for which no file waits,
/// ends the pause, or is followed by a longer one.
struct FileSystemSynchronization: Sendable, Hashable {
    private static let slowTime: Int64 = 50_000_000
    private static let (minPause, maxPause): (Int64, Int64) = (1_000_000_000, 60_000_000_000)

    let isSupported: Bool
    /// The time at which the running call began; nil if none runs. All times are monotonic, in nanoseconds.
    private var begun: Int64?
    /// The last pause; 0 after a call that was fast and succeeded.
    private var pause: Int64 = 0
    private var pauseEnd: Int64 = .min
    private var isTrying = false

    init(isSupported: Bool) { self.isSupported = isSupported }

    func isUsable(at now: Int64) -> Bool { isSupported && pause == 0 && !isSlow(at: now) }

    /// Whether the caller has to make a trial, because a pause has ended.
    mutating func beginTrial(at now: Int64) -> Bool {
        guard pause > 0, now >= pauseEnd, !isTrying else { return false }
        isTrying = true
        return true
    }

    mutating func endTrial(from begin: Int64, to end: Int64, isDone: Bool) {
        isTrying = false
        note(isGood: isDone && end - begin <= Self.slowTime, at: end)
    }

    private func isSlow(at now: Int64) -> Bool { begun.map { now - $0 > Self.slowTime } ?? false }

    /// Notes that a call for the file system begins. One at a time runs.
    mutating func begin(at now: Int64) { begun = now }

    /// - Parameter isDone: whether the call has succeeded.
    mutating func end(at now: Int64, isDone: Bool) {
        note(isGood: isDone && !isSlow(at: now), at: now)
        begun = nil
    }

    private mutating func note(isGood: Bool, at now: Int64) {
        pause = isGood ? 0 : min(max(2 * pause, Self.minPause), Self.maxPause)
        if !isGood { pauseEnd = now + pause }
    }
}
