import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct DataDirectoryTests {
    private func withPath(_ body: (String) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        try body(directory.path + "/data")
    }

    private func permissions(_ path: String) throws -> UInt32 {
        try FileDescriptor.open(path, .readOnly).status().permissions
    }

    @Test("a data directory is created with its parent directories, accessible only to its owner")
    func making() throws {
        try withPath { path in
            let store = try UploadStore.open(root: path + "/a/b")
            #expect(try permissions(path + "/a/b") == 0o700)
            #expect(try permissions(path + "/a/b/onward.sqlite") == 0o600)
            #expect(try permissions(path + "/a/b/onward.sqlite-wal") == 0o600)
            let names = Set(try FileManager.default.contentsOfDirectory(atPath: path + "/a/b"))
            #expect(names.isSuperset(of: ["files", "uploads", "onward.sqlite", "lock"]))
            store.close()
        }
    }

    @Test("a directory with other files is refused and not changed")
    func foreign() throws {
        try withPath { path in
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o1777])
            try Data("precious".utf8).write(to: URL(fileURLWithPath: path + "/precious.txt"))
            #expect { try UploadStore.open(root: path) } throws: { "\($0)".contains("precious.txt") }
            #expect(try permissions(path) == 0o1777)
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["precious.txt"])
        }
    }

    @Test("a directory whose only file has a name that is not UTF-8 is refused and not changed")
    func foreignBytes() throws {
        try withPath { path in
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o1777])
            _ = try FileDescriptor.open(FilePath("\(path)/a".utf8 + [0xFF]), [.writeOnly, .create])
            #expect { try UploadStore.open(root: path) } throws: { "\($0)".contains(#"contains a\xFF."#) }
            #expect(try permissions(path) == 0o1777)
        }
    }

    @Test("an empty directory is accepted, even if it is the root of a new file system")
    func empty() throws {
        try withPath { path in
            try FileManager.default.createDirectory(
                atPath: path + "/lost+found", withIntermediateDirectories: true)
            try UploadStore.open(root: path).close()
            #expect(try permissions(path) == 0o700)
        }
    }

    @Test("bytes of unfinished uploads are not deleted if the catalog is missing")
    func missingCatalog() throws {
        try withPath { path in
            let store = try UploadStore.open(root: path)
            let lease = try store.create(.testing(length: 8))
            try lease.append("abcd")
            _ = try lease.acknowledge()
            lease.release()
            store.close()
            let aside = path + "-aside"
            try FileManager.default.moveItem(atPath: path + "/onward.sqlite", toPath: aside)
            for suffix in ["-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + "/onward.sqlite" + suffix)
            }
            #expect { try UploadStore.open(root: path) } throws: { "\($0)".contains("onward.sqlite is missing") }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/uploads").count == 1)
            try FileManager.default.moveItem(atPath: aside, toPath: path + "/onward.sqlite")
            let again = try UploadStore.open(root: path)
            #expect(again.sweep().orphans == 0)
            again.close()
        }
    }

    @Test("a second store cannot open the directory until the first is closed")
    func locking() throws {
        try withPath { path in
            let store = try UploadStore.open(root: path)
            #expect(throws: StoreError.inUse) { try UploadStore.open(root: path) }
            store.close()
            try UploadStore.open(root: path).close()
        }
    }

    @Test("a large file disappears immediately, and is no longer open after the store was closed")
    func freeing() throws {
        func heldOpen() -> [String] {
            let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            return numbers.compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
            }
        }
        try withPath { path in
            let area = try FileBlobArea(DataDirectory(path: path))
            do {
                let blob = try area.create("large")
                try blob.truncate(to: 20 << 20)
            }
            try area.remove("large")
            #expect(try area.sizes().isEmpty)
            area.close()
            #expect(!heldOpen().contains { $0.hasPrefix(path + "/uploads/large") })
        }
    }

    @Test("a path that is not a directory is refused; the error does not repeat the path")
    func refusing() throws {
        try withPath { path in
            #expect(throws: StoreError.unusableRoot("No such file or directory (ENOENT)")) {
                try DataDirectoryCheck(root: path)
            }
            try Data().write(to: URL(fileURLWithPath: path))
            for root in [path, path + "/x"] {
                #expect(throws: StoreError.unusableRoot("it is not a directory")) { try UploadStore.open(root: root) }
            }
        }
    }

    @Test("a missing subdirectory, or one that is not a directory, is refused with its name")
    func refusingParts() throws {
        try withPath { path in
            try UploadStore.open(root: path).close()
            try FileManager.default.removeItem(atPath: path + "/files")
            #expect(throws: StoreError.unusableRoot("files: No such file or directory (ENOENT)")) {
                try DataDirectoryCheck(root: path)
            }
            try FileManager.default.createSymbolicLink(atPath: path + "/files", withDestinationPath: "/tmp")
            #expect(throws: StoreError.unusableRoot("files is not a directory")) { try UploadStore.open(root: path) }
        }
    }

    @Test("symbolic links and special files are refused at any depth, and links are never followed")
    func links() throws {
        try withPath { path in
            let store = try UploadStore.open(root: path)
            let outside = path + "-outside"
            try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: outside) }
            try Data("secret".utf8).write(to: URL(fileURLWithPath: outside + "/secret"))
            try FileManager.default.createSymbolicLink(atPath: path + "/files/dir", withDestinationPath: outside)
            try FileManager.default.createSymbolicLink(
                atPath: path + "/files/link", withDestinationPath: outside + "/secret")
            mkfifo(path + "/files/fifo", 0o600)
            for text in ["link", "fifo"] {
                #expect(throws: StoreError.targetIsSpecial) { try store.publishedFile(name(text)) }
            }
            #expect(throws: StoreError.parentIsFile) { try store.publishedFile(name("dir/secret")) }
            #expect(try store.entries(in: .root) == [])
            let directory = try #require(PublishedName.Directory(segments: ["dir"]))
            #expect(throws: StoreError.notFound) { try store.entries(in: directory) }
            let lease = try store.create(.testing())
            try lease.append("x")
            #expect(throws: StoreError.parentIsFile) { try lease.publish(.testing(name("dir/new"))) }
            #expect(throws: StoreError.targetIsSpecial) { try lease.publish(.testing(name("link"))) }
            #expect(throws: StoreError.targetIsSpecial) { try lease.publish(.testing(name("fifo"))) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == ["secret"])
            lease.release()
            store.close()
        }
    }

    @Test("the directory of a killed process is a complete store with every acknowledged byte")
    func killedProcess() throws {
        try withPath { path in
            let store = try UploadStore.open(root: path)
            let lease = try store.create(.testing(length: 8))
            let id = try #require(lease.id)
            try lease.append("abcd")
            #expect(try lease.acknowledge() == 4)
            try lease.append("ef")
            _ = try store.area.create("orphan")
            // The copy contains the data that another process finds after this process was killed.
            let copy = path + "-copy"
            defer { try? FileManager.default.removeItem(atPath: copy) }
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            let next = try UploadStore.open(root: copy)
            let taken = try next.lease(id)
            #expect(taken.received == 4)
            #expect(try taken.readAll() == Array("abcd".utf8))
            #expect(next.sweep().orphans == 1)
            #expect(try next.area.sizes().values.map { $0 } == [4])
            taken.release()
            next.close()
            lease.release()
            store.close()
        }
    }

    @Test("content larger than the write-back window is stored completely")
    func writeBack() throws {
        try withPath { path in
            var configuration = StoreConfiguration(minFree: 0)
            configuration.writeBackWindow = 4 << 20
            let store = try UploadStore.open(root: path, configuration: configuration)
            let lease = try store.create(.testing())
            let piece = [UInt8](repeating: 3, count: 1 << 20)
            for _ in 0..<24 { try lease.append(piece) }
            #expect(try lease.acknowledge() == 24 << 20)
            lease.release()
            store.close()
        }
    }
}
