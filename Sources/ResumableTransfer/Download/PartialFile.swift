import HTTPTransport
import Digests
import SystemCalls

/// The file that receives the bytes of a download until it is complete. It is locked until it is closed.
///
/// Each name is used for the bytes of only one version of the representation: before bytes are received from the beginning
/// again, the file gets a new name (``begin()``). So resume data with an older name never continues bytes of another
/// version.
final class PartialFile: BodySink {
    /// The end of the bytes that are on stable storage.
    struct Mark: Sendable, Hashable {
        var position: Int64
        /// SHA-256 of the last 64 KiB before `position`, in hexadecimal.
        var tailDigest: String?
        /// The digest of the bytes after `position`.
        var span: Span?
    }

    /// Bytes after the mark, and the digest that verifies them. They may not be on stable storage, so a download does
    /// not use them after a restart of the system.
    struct Span: Sendable, Hashable {
        var end: Int64
        /// SHA-256 of all bytes from the mark to the end, in hexadecimal.
        var digest: String
    }

    struct State {
        var name: FilePath
        /// Whether the file has this name; false while it has no name.
        var isNamed: Bool
        /// The descriptor of the file; `nil` after the file was closed.
        var descriptor: FileDescriptor?
        /// The position of the next byte. Bytes before it may still be in memory (``flush()``).
        var position: Int64 = 0
        /// The offset at which the content that is being received has to end; `nil` if it is unknown.
        var end: Int64?
        /// Whether bytes were received beyond `end`.
        var isOverrun = false
        /// Whether nothing was written under this name, and no checkpoint contains it.
        var isFresh = true
        var mark = Mark(position: 0)
        /// The time of the last synchronization, in monotonic nanoseconds.
        var synchronizedAt = SystemClock.monotonicNanoseconds()
        var isSynchronizing = false
        /// The time of the last call of ``updateSpan()``, in monotonic nanoseconds.
        var spanUpdatedAt = SystemClock.monotonicNanoseconds()
        /// The running digest of the span at the mark.
        var running: RunningSpan?
        /// The first error. Nothing is written after it.
        var failure: Errno?
        /// Whether bytes that were written may be lost although they can be read.
        var hasSynchronizationFailed = false
        /// Whether ``begin()`` failed: the file may still contain the bytes of the previous representation, and none of its
        /// bytes can be used.
        var isCorrupt = false
    }

    let location: PartialFileLocation
    let inode: UInt64
    let state: Monitor<State>
    /// The last received bytes, which are not in the file yet. Its lock orders the writes, and is acquired before that of
    /// the state.
    private let unwritten = Monitor<[UInt8]>([])

    /// - Parameter descriptor: open for reading and writing, and locked.
    init(
        _ location: PartialFileLocation, _ name: FilePath, _ descriptor: FileDescriptor, inode: UInt64, isNamed: Bool
    ) {
        self.location = location
        self.inode = inode
        state = Monitor(State(name: name, isNamed: isNamed, descriptor: descriptor))
    }

    /// Closes the file. The engine may keep this object for a while longer.
    func close() {
        state.withLock { $0.descriptor = nil }
    }

    func descriptor() throws(Errno) -> FileDescriptor {
        guard let descriptor = state.withLock({ $0.descriptor }) else { throw .badDescriptor }
        return descriptor
    }

    /// Creates an empty partial file. It has no name before ``linkName()`` if the file system supports files without a
    /// name. So nothing is left when the process is killed before the download can be resumed.
    static func create(in location: PartialFileLocation) throws(Errno) -> PartialFile {
        let name = PartialFileName.make(for: location.destinationName)
        // The permissions are those of the finished file; the umask applies.
        let mode: UInt32 = location.destinationName == nil ? 0o600 : 0o666
        var nameless = try? location.directory.open(at: ".", [.readWrite, .nameless], mode: mode)
        if nameless?.canBeLinked == false { nameless = nil }
        let isNamed = nameless == nil
        let descriptor =
            if let nameless {
                nameless
            } else {
                try location.directory.open(at: name, [.readWrite, .create, .exclusive, .noFollow], mode: mode)
            }
        guard try descriptor.lockForTransfer() else { throw .wouldBlock }
        return PartialFile(location, name, descriptor, inode: try descriptor.status().inode, isNamed: isNamed)
    }

    /// Gives the file its name if it has none. From then on the download can be resumed.
    func linkName() throws(Errno) {
        let (name, isNamed) = state.withLock { ($0.name, $0.isNamed) }
        guard !isNamed else { return }
        do throws(Errno) {
            try descriptor().link(to: location.directory, as: name)
            state.withLock { $0.isNamed = true }
        } catch {
            state.withLock { $0.failure = error }
            throw error
        }
    }

    // MARK: State

    var name: FilePath { state.withLock { $0.name } }
    var isNamed: Bool { state.withLock { $0.isNamed } }
    var isFresh: Bool { state.withLock { $0.isFresh } }
    var position: Int64 { state.withLock { $0.position } }
    var mark: Mark { state.withLock { $0.mark } }
    var isOverrun: Bool { state.withLock { $0.isOverrun } }
    var failure: Errno? { state.withLock { $0.failure } }
    /// Whether none of its bytes can be used.
    var isCorrupt: Bool { state.withLock { $0.isCorrupt } }

    // MARK: Content

    /// Prepares to receive content from `start` on. All bytes before `start` are in the file.
    /// - Parameter end: the offset at which the content has to end.
    func resume(at start: Int64, end: Int64) {
        state.withLock { state in
            state.position = start
            state.end = end
            state.isOverrun = false
            state.isFresh = false
        }
    }

    /// Prepares to receive a representation from its beginning, under a new name.
    func begin() throws(Errno) {
        if state.withLock({ $0.isFresh }) { return state.withLock { $0.isFresh = false } }
        unwritten.withLock { $0 = [] }
        let name = PartialFileName.make(for: location.destinationName)
        do throws(Errno) {
            if state.withLock({ $0.isNamed }) {
                try location.directory.rename(from: self.name, to: location.directory, as: name)
            }
            state.withLock { $0.name = name }
            try descriptor().truncate(to: 0)
        } catch {
            state.withLock { state in
                state.failure = error
                state.isCorrupt = true
            }
            throw error
        }
        state.withLock { state in
            state.position = 0
            state.end = nil
            state.isOverrun = false
            state.mark = Mark(position: 0)
        }
    }

    /// The number of bytes that are written to the file at once. libcurl passes at most 16 KiB at once; to write each of
    /// these parts takes twice the processor time.
    private static let writeSize = 256 << 10

    /// Receives the next bytes, and writes them to the file when there are enough of them.
    /// - Throws: an error even for bytes beyond the end, which are not written.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        try unwritten.withLock { (unwritten) throws(Errno) in
            let isOverrun = try state.withLock { (state) throws(Errno) in
                if let failure = state.failure { throw failure }
                let room = state.end.map { Int(clamping: $0 - state.position) } ?? .max
                let fitting = UnsafeRawBufferPointer(rebasing: bytes.prefix(room))
                unwritten += fitting
                state.position += Int64(fitting.count)
                state.isOverrun = fitting.count < bytes.count
                return state.isOverrun
            }
            if isOverrun || unwritten.count >= Self.writeSize { try flush(&unwritten) }
            if isOverrun { throw .fileTooLarge }
        }
    }

    /// Writes the received bytes that are still in memory to the file. If that fails, they do not count as received.
    /// - Returns: the position up to which all bytes are in the file.
    @discardableResult
    func flush() -> Int64 {
        unwritten.withLock { unwritten in
            try? flush(&unwritten)
            return position
        }
    }

    private func flush(_ unwritten: inout [UInt8]) throws(Errno) {
        guard !unwritten.isEmpty else { return }
        defer { unwritten.removeAll(keepingCapacity: true) }
        let start = position - Int64(unwritten.count)
        do throws(Errno) {
            if let failure { throw failure }
            try descriptor().write(unwritten, at: start)
        } catch {
            state.withLock { state in
                state.position = start
                state.failure = state.failure ?? error
            }
            throw error
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try descriptor().read(into: buffer, at: offset)
    }

    // MARK: Durability

    /// The maximum loss in a crash of the system, in bytes and in nanoseconds.
    private static let maxUnsynchronizedBytes: Int64 = 32 << 20
    private static let maxUnsynchronizedTime: Int64 = 5_000_000_000

    /// Whether ``synchronize()`` is due. After `true` the caller has to call it; until then the result is `false`.
    func needsSynchronization() -> Bool {
        let now = SystemClock.monotonicNanoseconds()
        return state.withLock { state in
            let behind = state.position - state.mark.position
            guard !state.isSynchronizing, state.failure == nil, behind > 0,
                behind >= Self.maxUnsynchronizedBytes || now - state.synchronizedAt >= Self.maxUnsynchronizedTime
            else { return false }
            state.isSynchronizing = true
            return true
        }
    }

    /// Makes all received bytes durable and moves the mark. This may take long.
    ///
    /// - Returns: the error, if there is one. The bytes after the mark may then be lost although they can still be
    ///   read.
    @discardableResult
    func synchronize() -> Errno? {
        let (name, isLost) = state.withLock { ($0.name, $0.hasSynchronizationFailed) }
        let position = flush()
        do throws(Errno) {
            // The kernel discards bytes that it failed to write. A second call would succeed although they are lost.
            if isLost { throw Errno.inputOutput }
            try descriptor().synchronizeData()
            let mark = Mark(position: position, tailDigest: try tailDigest(upTo: position))
            state.withLock { state in
                if state.name == name { state.mark = mark }
                state.synchronizedAt = SystemClock.monotonicNanoseconds()
                state.isSynchronizing = false
            }
            return nil
        } catch {
            return state.withLock { state in
                state.hasSynchronizationFailed = true
                state.isSynchronizing = false
                state.mark.span = nil
                state.failure = state.failure ?? error
                return state.failure
            }
        }
    }

    /// Removes the bytes after the mark, when ``synchronize()`` has failed and writing has ended.
    func dropUnsynchronized() {
        state.withLock { $0.position = min($0.position, $0.mark.position) }
        try? descriptor().truncate(to: position)
    }

    /// Drops the bytes from `position` on, which may be wrong.
    func drop(from position: Int64) {
        state.withLock { state in
            state.position = min(state.position, position)
            state.isOverrun = false
            if state.mark.position > state.position { state.mark = Mark(position: 0) }
        }
        try? descriptor().truncate(to: self.position)
        _ = synchronize()
    }

    // MARK: The end

    /// Gives the file its final name, and makes the name durable.
    /// - Returns: its path.
    func publish() throws(Errno) -> FilePath {
        let name = name
        if let error = synchronize() ?? failure { throw error }
        guard try descriptor().status().size == position else { throw .inputOutput }
        try linkName()
        // Another file may have this name now.
        guard try location.directory.status(at: name).inode == inode else { throw .noSuchFile }
        let final = location.destinationName ?? FilePath(name.bytes.dropLast(PartialFileName.suffix.bytes.count))
        if let replaced = try location.existing() { try descriptor().setPermissions(replaced.permissions & 0o777) }
        try location.directory.rename(from: name, to: location.directory, as: final)
        do throws(Errno) {
            try location.directory.synchronize()
        } catch {
            // Not every file system can synchronize a directory.
            if error != .invalidArgument { throw error }
        }
        return location.path.appending(final)
    }

    /// Gives a complete file its final name, and its modification time. Nothing is synchronized.
    /// - Parameter modified: in seconds since 1970; `nil`: the time of the last write.
    func publishUnsynchronized(modified: Int64?) throws(Errno) {
        guard let final = location.destinationName else { throw .invalidArgument }
        flush()
        if let failure { throw failure }
        let descriptor = try descriptor()
        if let modified { try descriptor.setModified(FileStatus.Time(seconds: modified, nanoseconds: 0)) }
        if let replaced = try location.existing() { try descriptor.setPermissions(replaced.permissions & 0o777) }
        try linkName()
        do throws(Errno) {
            try location.directory.rename(from: name, to: location.directory, as: final)
        } catch {
            remove()
            throw error
        }
    }

    /// Removes the file.
    func remove() {
        let name = name
        guard (try? location.directory.status(at: name).inode) == inode else { return }
        try? location.directory.unlink(at: name)
    }
}
