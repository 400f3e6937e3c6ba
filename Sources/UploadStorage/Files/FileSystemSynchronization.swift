/// The decision whether files are synchronized together, with all changes of their file system, instead of each on its
/// own.
///
/// One call for the file system is much faster than one for each file, unless there is much to write that does not
/// belong to these files: content of large uploads, or of other programs. So a call that was slow is followed by a
/// pause.
struct FileSystemSynchronization: Sendable, Hashable {
    private static let slowTime: Int64 = 50_000_000
    private static let (minPause, maxPause): (Int64, Int64) = (1_000_000_000, 60_000_000_000)

    let isSupported: Bool
    /// The last pause; 0 after a call that was not slow. All times are in nanoseconds.
    private var pause: Int64 = 0
    private var pauseEnd: Int64 = .min

    init(isSupported: Bool) { self.isSupported = isSupported }

    /// - Parameter now: the monotonic time.
    func isUsable(at now: Int64) -> Bool { isSupported && now >= pauseEnd }

    /// Notes the times of a call for the file system.
    mutating func synchronized(from begin: Int64, to end: Int64) {
        let isSlow = end - begin > Self.slowTime
        pause = isSlow ? min(max(2 * pause, Self.minPause), Self.maxPause) : 0
        if isSlow { pauseEnd = end + pause }
    }
}
