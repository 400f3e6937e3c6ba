import Synchronization
import SystemCalls

/// A blob area whose bytes are in files: those of unfinished uploads in `uploads/`, published files under their own
/// names in `files/`.
final class FileBlobArea: BlobArea {
    private static let probeName = ".probe"
    /// Stands for the entire file system where a synchronization is named by the inode of its directory. No inode has
    /// this number.
    static let fileSystemTurn: UInt64 = 0

    /// Files above this size, in bytes, are freed by another thread, because freeing some gigabytes takes a second.
    private static let maxSizeFreedByCaller: Int64 = 8 << 20

    // A literal of flags is combined at run time, which needs several allocations.
    private static let creation: FileDescriptor.OpenFlags = [.readWrite, .create, .exclusive, .noFollow]
    /// Flags with which the file that has a name is opened. With `nonBlocking` the call does not wait for a process at
    /// the other end of a FIFO.
    static let reading: FileDescriptor.OpenFlags = [.readOnly, .noFollow, .nonBlocking]

    let directory: DataDirectory
    let directories = DirectorySynchronization()
    let fileSystem: Monitor<FileSystemSynchronization>
    private let freeing: WorkQueue

    init(_ directory: DataDirectory) throws(Errno) {
        self.directory = directory
        fileSystem = Monitor(FileSystemSynchronization(isSupported: directory.uploads.canSynchronizeFileSystem))
        freeing = try WorkQueue(name: "free", threads: 1, yieldsToOthers: true)
    }

    func create(_ name: String) throws(Errno) -> any Blob {
        let epoch = directories.epoch
        let descriptor = try directory.uploads.open(at: name, Self.creation)
        return FileBlob(descriptor, named: name, in: directory.uploads, directories, since: epoch)
    }

    func open(_ name: String) throws(Errno) -> any Blob {
        let descriptor = try directory.uploads.open(at: name, [.readWrite, .noFollow])
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
