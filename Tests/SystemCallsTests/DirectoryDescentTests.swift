import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("Directories below a directory")
struct DirectoryDescentTests {
    private let place: TemporaryDirectory
    private let root: FileDescriptor

    init() throws {
        place = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: place.path + "/root/a/b", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: place.path + "/outside/b", withIntermediateDirectories: true)
        symlink("../outside", place.path + "/root/link")
        _ = try place.file("root/file", [1])
        root = try FileDescriptor.open(place.path + "/root", [.readOnly, .directory])
    }

    @Test("A directory is opened by its relative path")
    func opened() throws {
        let status = try FilePath(place.path + "/root/a/b").status()
        #expect(try root.openDirectory(beneath: "a/b").status().inode == status.inode)
        #expect(try root.openDirectory(beneath: "").status().inode == root.status().inode)
    }

    @Test(
        "No symbolic link is followed, and no path leaves the directory",
        arguments: ["link", "link/b", "a/../../outside", "..", "a/..", ".", "file", "a\0"])
    func refused(path: String) {
        #expect(throws: Errno.self) { try root.openDirectory(beneath: FilePath(path)) }
    }

    @Test("A missing directory is created; a symbolic link or a file with its name is not followed or replaced")
    func created() throws {
        let new = try root.createDirectory(named: "new")
        #expect(try root.createDirectory(named: "new").status().inode == new.status().inode)
        for name: FilePath in ["link", "file", "..", "a/b", ""] {
            #expect(throws: Errno.self) { try root.createDirectory(named: name) }
        }
        #expect(FilePath(place.path + "/root/link").isDirectory)
    }

    @Test("A path is relative to each of its ancestors")
    func relative() {
        #expect(FilePath("/a/b/c").relative(to: "/a") == "b/c" && FilePath("/a").relative(to: "/a") == "")
        #expect(FilePath("/a/b").relative(to: "/") == "a/b" && FilePath("/ab").relative(to: "/a") == nil)
    }
}
