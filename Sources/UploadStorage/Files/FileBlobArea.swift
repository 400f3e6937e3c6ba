import Synchronization
import SystemCalls

/// Bytes in files: unfinished ones in `uploads/`, published ones under their own names in `files/`.
final class FileBlobArea: BlobArea {
    private static let probeName = ".probe"

    let directory: DataDirectory

    init(_ directory: DataDirectory) { self.directory = directory }

    func create(_ name: String) throws(Errno) -> any Blob {
        let descriptor = try directory.uploads.open(at: name, [.readWrite, .create, .exclusive, .noFollow])
        return FileBlob(descriptor, named: name, in: directory.uploads)
    }

    func open(_ name: String) throws(Errno) -> any Blob {
        let descriptor = try directory.uploads.open(at: name, [.readWrite, .noFollow])
        return FileBlob(descriptor, named: name, in: directory.uploads)
    }

    func remove(_ name: String) throws(Errno) {
        do throws(Errno) { try directory.uploads.unlink(at: name) } catch { if error != .noSuchFile { throw error } }
    }

    func sizes() throws(Errno) -> [String: Int64] {
        var result: [String: Int64] = [:]
        for name in try directory.uploads.entryNames() where name != Self.probeName {
            do throws(Errno) {
                let status = try directory.uploads.status(at: name)
                if status.isRegular { result[name] = status.size }
            } catch {
                if error != .noSuchFile { throw error }
            }
        }
        return result
    }

    func space() throws(Errno) -> FileSystemSpace { try directory.root.fileSystemSpace() }

    func probe() throws(Errno) {
        let file = try directory.uploads.open(at: Self.probeName, [.readWrite, .create, .truncate, .noFollow])
        var word: UInt64 = 1
        try withUnsafeBytes(of: &word) { (bytes) throws(Errno) in try file.write(bytes, at: 0) }
        try file.synchronizeData()
        try remove(Self.probeName)
    }

    func close() { directory.unlock() }
}
