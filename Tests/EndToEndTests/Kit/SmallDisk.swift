import Glibc
import SystemCalls
import TestSupport
import Testing

/// A small file system in memory, which a test mounts on a directory and fills.
struct SmallDisk {
    /// Whether this process may mount file systems.
    static let isPossible: Bool = {
        guard let directory = try? TemporaryDirectory(), let disk = try? SmallDisk(on: directory.path, "size=64k")
        else { return false }
        disk.unmount()
        return true
    }()

    static let requirement: Comment = "needs root, to mount a small tmpfs"

    let path: String

    /// - Parameter options: options of tmpfs, such as `size=64k`.
    init(on path: String, _ options: String) throws {
        self.path = path
        guard mount("tmpfs", path, "tmpfs", 0, options) == 0 else { throw Errno.current }
    }

    func unmount() { umount2(path, Int32(MNT_DETACH)) }

    /// Fills the disk with a file.
    /// - Parameter count: the number of bytes that stay free.
    /// - Returns: the path of the file.
    static func fill(_ path: String, leaving count: Int = 0) throws -> String {
        let path = path + "/ballast"
        // "e" closes the file on exec: otherwise a server started by another test would keep the space occupied.
        let handle = try #require(fopen(path, "we"))
        let block = [UInt8](repeating: 0, count: 4096)
        while fwrite(block, 1, block.count, handle) == block.count, fflush(handle) == 0 {}
        fclose(handle)
        var status = stat()
        #expect(stat(path, &status) == 0)
        if count > 0 { #expect(truncate(path, max(0, Int(status.st_size) - count)) == 0) }
        return path
    }
}
