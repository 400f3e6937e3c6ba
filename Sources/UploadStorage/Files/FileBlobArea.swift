import Synchronization
import SystemCalls

/// A blob area whose bytes are in files: those of unfinished uploads in `uploads/`, published files under their own
/// names in `files/`.
final class FileBlobArea: PublishingBlobArea {
    static let probeName = ".probe"
    /// Identifies synchronizations of the entire file system. The synchronization of a directory is identified by the
    /// inode of the directory, which is never this number.
    static let fileSystemTurn: UInt64 = 0

    /// Files above this size, in bytes, are freed by another thread, because freeing some gigabytes takes a second.
    private static let maxSizeFreedByCaller: Int64 = 8 << 20

    // A literal of flags is combined at run time, which needs several allocations.
    private static let creation: FileDescriptor.OpenFlags = [.readWrite, .create, .exclusive, .noFollow]
    /// Flags for opening a file by its name. With `nonBlocking` the call does not wait for a process at the other end
    /// of a FIFO.
    static let reading: FileDescriptor.OpenFlags = [.readOnly, .noFollow, .nonBlocking]

    let directory: DataDirectory
    let directories = DirectorySynchronization()
    let fileSystem: Monitor<FileSystemSynchronizationPolicy>
    private let freeing: WorkQueue

    init(_ directory: DataDirectory) throws(Errno) {
        self.directory = directory
        fileSystem = Monitor(FileSystemSynchronizationPolicy(isSupported: directory.uploads.canSynchronizeFileSystem))
        freeing = try WorkQueue(name: "free", threads: 1, shouldYield: true)
    }

    func create(_ name: String) throws(Errno) -> any Blob {
        let epoch = directories.epoch
        let descriptor = try directory.uploads.open(at: name, Self.creation)
        return FileBlob(descriptor, named: name, in: directory.uploads, directories, since: epoch)
    }

    func open(_ name: String) throws(Errno) -> any Blob {
        let descriptor: FileDescriptor
        do throws(Errno) { descriptor = try directory.uploads.open(at: name, [.readWrite, .noFollow]) } catch {
            // A file that was handed over by its path is read-only: see `FileBlob.endWriting()`. This server reads it, to
            // hand it over again.
            guard error == .accessDenied else { throw error }
            descriptor = try directory.uploads.open(at: name, [.readOnly, .noFollow])
        }
        return FileBlob(descriptor, named: name, in: directory.uploads, directories, since: directories.epoch)
    }

    func remove(_ name: String) throws(Errno) {
        do throws(Errno) {
            try freeingInBackground(name, from: directory.uploads) { () throws(Errno) in
                try directory.uploads.unlink(at: name)
            }
        } catch {
            if error != .noSuchFile { throw error }
        }
    }

    func retain(_ name: String, as key: String, description: [UInt8]) throws(Errno) {
        let retained = try directory.retained()
        let file = try retained.open(
            at: key + RetainedFiles.descriptionSuffix, [.readWrite, .create, .truncate, .noFollow])
        try file.write(description, at: 0)
        try file.synchronizeData()
        do throws(Errno) { try directory.uploads.link(from: name, to: retained, as: key) } catch {
            if error != .fileExists { throw error }
        }
        try retained.synchronize()
    }

    func retainedCount() throws(Errno) -> Int {
        do throws(Errno) {
            let retained = try directory.root.open(at: DataDirectory.retainedName, [.readOnly, .directory, .noFollow])
            return try RetainedFiles.keys(in: retained).count
        } catch {
            if error == .noSuchFile { return 0 }
            throw error
        }
    }

    /// Runs `body`, which removes the last name of a file. A large file is kept open until `body` has returned, and is
    /// then closed by another thread, so that no request waits until the file system has freed its blocks.
    func freeingInBackground(_ name: String, from parent: FileDescriptor, _ body: () throws(Errno) -> Void)
        throws(Errno)
    {
        let held = try? parent.open(at: name, Self.reading)
        try body()
        guard let held, let size = try? held.status().size, size > Self.maxSizeFreedByCaller else { return }
        freeing.enqueue { withExtendedLifetime(held) {} }
    }

    func names() throws(Errno) -> BlobNames {
        let stream = try DirectoryStream(directory.uploads)
        return { () throws(Errno) -> String? in
            while let name = try stream.next({ name, _ in String(validating: name, as: UTF8.self) }) {
                if let name, name != Self.probeName { return name }
            }
            return nil
        }
    }

    func size(of name: String) throws(Errno) -> Int64? {
        do throws(Errno) {
            let status = try directory.uploads.status(at: name)
            return status.isRegular ? status.size : nil
        } catch {
            if error == .noSuchFile { return nil }
            throw error
        }
    }

    func space() throws(Errno) -> FileSystemSpace { try directory.root.fileSystemSpace() }

    func probe() throws(Errno) {
        let file = try directory.uploads.open(at: Self.probeName, [.readWrite, .create, .truncate, .noFollow])
        var word: UInt64 = 1
        try withUnsafeBytes(of: &word) { (bytes) throws(Errno) in try file.write(bytes, at: 0) }
        try file.synchronizeData()
        try remove(Self.probeName)
    }

    func close() {
        freeing.close()
        directory.unlock()
    }
}

/// The bytes of one upload in a file.
final class FileBlob: Blob {
    private let descriptor: FileDescriptor
    private let directory: FileDescriptor
    private let name: String
    private let directories: DirectorySynchronization
    /// The epoch from before the file got its name.
    let epoch: SynchronizationEpoch
    private let nameIsDurable = Atomic(false)
    // A separate open file description: waiting for write-back consumes the error of a description, and the
    // synchronization must still get that error.
    private let writeBackDescriptor = Monitor<FileDescriptor?>(nil)

    /// - Parameter epoch: the epoch from before the file got its name.
    init(
        _ descriptor: FileDescriptor, named name: String, in directory: FileDescriptor,
        _ directories: DirectorySynchronization, since epoch: SynchronizationEpoch
    ) {
        self.descriptor = descriptor
        self.name = name
        self.directory = directory
        self.directories = directories
        self.epoch = epoch
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        let count = try descriptor.writeSome(bytes, at: offset)
        if count == 0 && !bytes.isEmpty { throw .inputOutput }
        return count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try descriptor.read(into: buffer, at: offset)
    }

    func startWriteBack(at offset: Int64, count: Int64) {
        _ = try? openForWriteBack().startWriteBack(at: offset, count: count)
    }

    func awaitWriteBack(at offset: Int64, count: Int64) {
        _ = try? openForWriteBack().awaitWriteBack(at: offset, count: count)
    }

    private func openForWriteBack() throws(Errno) -> FileDescriptor {
        try writeBackDescriptor.withLock { (opened) throws(Errno) in
            if let opened { return opened }
            let new = try openByName()
            opened = new
            return new
        }
    }

    private func openByName() throws(Errno) -> FileDescriptor {
        try directory.open(at: name, [.readOnly, .noFollow])
    }

    func openForReading() throws(Errno) -> FileDescriptor? { try openByName() }

    func synchronize(including detail: BlobDetail?) throws(Errno) {
        if detail == .attributes { try descriptor.synchronize() } else { try descriptor.synchronizeData() }
        if detail == .name && !nameIsDurable.load(ordering: .acquiring) {
            try directories.synchronize(directory, since: epoch)
            nameIsDurable.store(true, ordering: .releasing)
        }
    }

    func size() throws(Errno) -> Int64 { try descriptor.status().size }

    func truncate(to size: Int64) throws(Errno) { try descriptor.truncate(to: size) }

    /// Makes the file read-only, and closes the open file description that could write to it. Later writes fail.
    func endWriting() throws(Errno) {
        try descriptor.setPermissions(SharedFile.permissions)
        try descriptor.replace(with: try directory.open(at: name, [.readOnly, .noFollow]))
    }

    func identity() throws(Errno) -> String { try descriptor.status().identity }

    func setModified(_ nanoseconds: Int64) throws(Errno) {
        try descriptor.setModified(FileStatus.Time(nanoseconds: nanoseconds))
    }

    func attributes() throws(Errno) -> PublishedFile.Attributes { try descriptor.status().publishedAttributes() }
}

/// The decision whether files are synchronized together, with all changes of their file system, instead of each on its
/// own.
///
/// One call for the file system is much faster than one for each file, unless there is much to write that does not
/// belong to these files: content of large uploads, or of other programs. Then it may take many seconds. So as soon as
/// a call is slow, other files are synchronized on their own, until a trial is fast. A trial is a call for which no
/// file waits. The first trial follows the slow call at once, because the slow call has written everything that was
/// waiting. Each slow trial is followed by a longer pause. A pause also follows a call that has failed: the failed
/// write may be a write of another program, and the next call would report it, too.
struct FileSystemSynchronizationPolicy: Sendable, Hashable {
    private static let (minPause, maxPause): (Int64, Int64) = (1_000_000_000, 60_000_000_000)

    let isSupported: Bool
    /// The duration of a call in nanoseconds above which it is slow.
    private let slowTime: Int64
    /// The time at which the running call began; `nil` if none runs. All times are monotonic, in nanoseconds.
    private var begun: Int64?
    /// The pause after the last call or trial; `nil` if that was fast and succeeded.
    private var pause: Int64?
    private var pauseEnd: Int64 = .min
    private var isTrying = false

    init(isSupported: Bool, slowTime: Int64 = 50_000_000) {
        self.isSupported = isSupported
        self.slowTime = slowTime
    }

    func isUsable(at now: Int64) -> Bool { isSupported && pause == nil && !isSlow(at: now) }

    /// Whether the caller has to make a trial, because a pause has ended.
    mutating func beginTrial(at now: Int64) -> Bool {
        guard pause != nil, now >= pauseEnd, !isTrying else { return false }
        isTrying = true
        return true
    }

    mutating func endTrial(from begin: Int64, to end: Int64, isDone: Bool) {
        isTrying = false
        note(isDone: isDone, isSlow: end - begin > slowTime, at: end)
    }

    private func isSlow(at now: Int64) -> Bool { begun.map { now - $0 > slowTime } ?? false }

    /// Notes that a call for the file system begins. One at a time runs.
    mutating func begin(at now: Int64) { begun = now }

    /// - Parameter isDone: whether the call has succeeded.
    mutating func end(at now: Int64, isDone: Bool) {
        note(isDone: isDone, isSlow: isSlow(at: now), at: now)
        begun = nil
    }

    private mutating func note(isDone: Bool, isSlow: Bool, at now: Int64) {
        if isDone && !isSlow {
            pause = nil
            return
        }
        let next = pause.map { min(max(2 * $0, Self.minPause), Self.maxPause) } ?? (isDone ? 0 : Self.minPause)
        pause = next
        pauseEnd = now + next
    }
}
