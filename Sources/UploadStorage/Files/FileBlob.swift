import Synchronization
import SystemCalls

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
            let new = try directory.open(at: name, [.readOnly, .noFollow])
            opened = new
            return new
        }
    }

    func synchronize(including detail: BlobDetail?) throws(Errno) {
        if detail == .attributes { try descriptor.synchronize() } else { try descriptor.synchronizeData() }
        if detail == .name && !nameIsDurable.load(ordering: .acquiring) {
            try directories.synchronize(directory, since: epoch)
            nameIsDurable.store(true, ordering: .releasing)
        }
    }

    func size() throws(Errno) -> Int64 { try descriptor.status().size }

    func truncate(to size: Int64) throws(Errno) { try descriptor.truncate(to: size) }

    func identity() throws(Errno) -> String { try descriptor.status().identity }

    func setModified(_ nanoseconds: Int64) throws(Errno) {
        try descriptor.setModified(FileStatus.Time(nanoseconds: nanoseconds))
    }

    func attributes() throws(Errno) -> PublishedFile.Attributes { try descriptor.status().publishedAttributes() }
}
