import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The directory of a store") struct PrivateDirectoryTests {
    let place: TemporaryDirectory
    let directory: PrivateDirectory

    init() throws {
        place = try TemporaryDirectory()
        directory = try PrivateDirectory.open(FilePath(place.path))
    }

    @Test("a file that other users could have written is refused")
    func foreign() throws {
        #expect(try directory.read("missing") == nil)
        try directory.replace("x", with: Data("{}".utf8))
        #expect(try directory.read("x") == Data("{}".utf8))
        for mode: mode_t in [0o644, 0o620, 0o606] {
            chmod(place.path + "/x", mode)
            #expect(throws: StateError.self) { try directory.read("x") }
        }
        symlink("/etc/passwd", place.path + "/link")
        #expect(throws: StateError.self) { try directory.read("link") }
        mkfifo(place.path + "/fifo", 0o600)
        #expect(throws: StateError.self) { try directory.read("fifo") }
    }

    @Test(
        "a missing directory is created for its owner only, and a directory that others can write to is refused")
    func creation() throws {
        let path = FilePath(place.path + "/a/b")
        #expect(try PrivateDirectory.create(path).path == path)
        #expect(try path.status().permissions == 0o700)
        chmod(place.path + "/a/b", 0o777)
        #expect(throws: StateError.self) { try PrivateDirectory.create(path) }
        _ = try place.file("f", [1])
        for unusable: FilePath in [FilePath(place.path + "/f"), FilePath(place.path + "/f/b"), "relative", ""] {
            #expect(throws: StateError.self, "\(unusable)") { try PrivateDirectory.create(unusable) }
        }
    }

    @Test("a lock has one holder at a time and reports the holder's process ID; its file is removed after the release")
    func locks() throws {
        do {
            let lock = try StateLock.acquire("a.lock", in: directory)
            do throws(StateError) {
                _ = try StateLock.acquire("a.lock", in: directory, pause: {})
                Issue.record("acquired twice")
            } catch {
                guard case .inUse(getpid()) = error else { throw error }
            }
            #expect(StateLock.holder(of: "a.lock", in: directory).isHeld)
            withExtendedLifetime(lock) {}
        }
        #expect(directory.names().isEmpty)
        #expect(!StateLock.holder(of: "a.lock", in: directory).isHeld)
        _ = try StateLock.acquire("a.lock", in: directory)
    }

    @Test("a lock that is not needed any more becomes the lock of another name, unless that lock exists")
    func reusedLocks() throws {
        let first = try StateLock.acquire("a.lock", in: directory)
        let second = try StateLock.acquire("b.lock", in: directory, reusing: first)
        #expect(first === second && directory.names() == ["b.lock"])
        #expect(StateLock.holder(of: "b.lock", in: directory) == (true, getpid()))
        #expect(!StateLock.holder(of: "a.lock", in: directory).isHeld)
        let other = try StateLock.acquire("a.lock", in: directory)
        #expect(throws: StateError.self) {
            try StateLock.acquire("a.lock", in: directory, reusing: second, pause: {})
        }
        #expect(directory.names() == ["a.lock", "b.lock"])
        withExtendedLifetime((other, second)) {}
    }

    @Test("a process that checks a lock for a moment does not prevent another process from acquiring it")
    func lookedAt() throws {
        // A killed process left the lock file, and another process checks the lock while this process acquires it.
        var looking: FileDescriptor? = try directory.openFile("a.lock")
        #expect(try looking?.tryLock() == true)
        _ = try StateLock.acquire("a.lock", in: directory, pause: { looking = nil })
        #expect(looking == nil)
    }
}
