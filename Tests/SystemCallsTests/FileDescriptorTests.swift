import Foundation
import TestSupport
import Testing

@testable import SystemCalls

@Suite struct FileDescriptorTests {
    private func withDirectory(_ body: (FileDescriptor, String) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        try body(try FileDescriptor.open(directory.path, [.readOnly, .directory]), directory.path)
    }

    @Test func writtenContentIsReadBack() throws {
        try withDirectory { directory, _ in
            let file = try directory.open(at: "f", [.readWrite, .create, .exclusive])
            try file.write(Array("hello".utf8), at: 3)
            var buffer = [UInt8](repeating: 9, count: 20)
            let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0, at: 2) }
            #expect(Array(buffer[..<count]) == [0] + Array("hello".utf8))
            try file.truncate(to: 4)
            try file.synchronizeData()
            try file.startWriteBack(at: 0, count: 4)
            try file.awaitWriteBack(at: 0, count: 4)
            #expect(try file.status().size == 4)
            #expect(try file.status().isRegular && directory.status().isDirectory)
            #expect(try file.duplicate().status() == file.status())
        }
    }

    @Test func namesAreMovedAndListed() throws {
        try withDirectory { directory, _ in
            _ = try directory.open(at: "a", [.readWrite, .create])
            _ = try directory.open(at: "b", [.readWrite, .create])
            #expect(throws: Errno.fileExists) { try directory.renameNoReplace(from: "a", to: directory, as: "b") }
            try directory.renameNoReplace(from: "a", to: directory, as: "c")
            try directory.rename(from: "c", to: directory, as: "b")
            try directory.makeDirectory(at: "d")
            #expect(throws: Errno.isDirectory) { try directory.rename(from: "b", to: directory, as: "d") }
            try directory.link(from: "b", to: directory, as: "e")
            #expect(try directory.status(at: "e").linkCount == 2)
            #expect(try Set(directory.entryNames()) == ["b", "d", "e"])
            #expect(try Set(directory.entryNames()) == ["b", "d", "e"])
            try directory.unlink(at: "b")
            try directory.removeDirectory(at: "d")
            #expect(throws: Errno.noSuchFile) { try directory.unlink(at: "b") }
            try directory.synchronize()
        }
    }

    @Test func namesNeedNotBeUTF8() throws {
        try withDirectory { directory, _ in
            let name = FilePath([0x61, 0xFF])
            _ = try directory.open(at: name, [.readWrite, .create])
            try directory.makeDirectory(at: "b")
            #expect(try Set(directory.entryPaths()) == [name, "b"])
            #expect(try directory.entryNames() == ["b"])
            #expect(throws: Errno.notDirectory) { try directory.removeDirectory(at: name) }
            try directory.unlink(at: name)
            try directory.removeDirectory(at: FilePath("b"))
            #expect(try directory.entryPaths() == [])
        }
    }

    @Test func anUnnamedFileCanBeLinked() throws {
        try withDirectory { directory, _ in
            let file = try directory.open(at: ".", [.readWrite, .nameless], mode: 0o640)
            #expect(try directory.entryPaths() == [] && file.status().isRegular && file.canBeLinked)
            try file.link(to: directory, as: "a")
            #expect(try directory.status(at: "a").inode == file.status().inode)
            #expect(throws: Errno.fileExists) { try file.link(to: directory, as: "a") }
        }
    }

    @Test func linksAreNotFollowed() throws {
        try withDirectory { directory, path in
            try FileManager.default.createSymbolicLink(atPath: path + "/l", withDestinationPath: "/etc")
            #expect(throws: Errno.tooManySymbolicLinks) { try directory.open(at: "l", [.readOnly, .noFollow]) }
            #expect(throws: Errno.notDirectory) { try directory.open(at: "l", [.readOnly, .directory, .noFollow]) }
            #expect(try directory.status(at: "l").isSymbolicLink)
        }
    }

    @Test func timesAreSetToTheNanosecond() throws {
        try withDirectory { directory, _ in
            let file = try directory.open(at: "f", [.readWrite, .create])
            let time = FileStatus.Time(seconds: 1_234_567_890, nanoseconds: 123_456_789)
            try file.setModified(time)
            #expect(try file.status().modified == time)
            #expect(try file.fileSystemSpace().free > 0)
        }
    }

    @Test func aLockExcludesOtherDescriptors() throws {
        try withDirectory { directory, _ in
            let other: FileDescriptor
            do {
                let first = try directory.open(at: "lock", [.readWrite, .create])
                other = try directory.open(at: "lock", .readWrite)
                #expect(try first.tryLock())
                #expect(try !other.tryLock())
                #expect(try other.isLockedElsewhere())
                withExtendedLifetime(first) {}
            }
            #expect(try !other.isLockedElsewhere())
            #expect(try other.tryLock())
        }
    }

    @Test func aLockIsReleasedEvenIfACopyOfItsDescriptorIsOpen() throws {
        try withDirectory { directory, _ in
            var file: FileDescriptor? = try directory.open(at: "lock", [.readWrite, .create])
            #expect(try file?.tryLock() == true)
            // A forked child that has not executed its program yet has such a copy.
            let copy = FileDescriptor(owning: dup(file?.rawValue ?? -1))
            file = nil
            #expect(try directory.open(at: "lock", [.readWrite]).tryLock())
            withExtendedLifetime(copy) {}
        }
    }

    @Test func errorsHaveNames() {
        #expect(Errno.noSpace.name == "ENOSPC")
        #expect(Errno.noSpace.description == "No space left on device (ENOSPC)")
        #expect(Errno(rawValue: 9999).name == "errno 9999")
        #expect(throws: Errno.noSuchFile) { try FileDescriptor.open("/nowhere/at/all", .readOnly) }
    }

    @Test(
        "the version of the kernel is read from its text",
        arguments: [
            ("6.1.0-28-amd64", 6, 1), ("5.8", 5, 8), ("5.15.167.4-microsoft-standard-WSL2", 5, 15), ("6.18-rc1", 6, 18),
            ("7", 7, 0), ("", 0, 0),
        ])
    func release(_ text: String, _ major: Int, _ minor: Int) {
        #expect(SystemRelease(parsing: text) == SystemRelease(major: major, minor: minor))
        #expect(SystemRelease(major: 5, minor: 8) < SystemRelease(major: 5, minor: 15))
        #expect(SystemRelease.current > SystemRelease(major: 3, minor: 0))
    }
}
