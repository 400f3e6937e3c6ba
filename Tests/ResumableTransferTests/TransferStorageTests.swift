import Foundation
import Glibc
import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite struct TransferStorageTests {
    let directory: TemporaryDirectory
    let storage: TransferStorage

    init() throws {
        directory = try TemporaryDirectory()
        storage = TransferStorage(path: directory.path + "/state/onward/transfers")
    }

    private func ticketed() throws -> ResumeData {
        var record = ResumeRecord.uploadSample(hasTicket: true)
        let ticket = try #require(storage.issueTicket(for: record.id, generation: record.generation + 1))
        record.generation = ticket.generation
        return try ResumeData(record)
    }

    @Test("the directory is made for its owner alone, whatever the mask")
    func mode() throws {
        let opened = try storage.open()
        #expect(try opened.status().permissions == 0o700)
        #expect(try storage.open().status().inode == opened.status().inode)
    }

    @Test("a ticket is good for one use, and again after what it was used for failed")
    func singleUse() throws {
        let data = try ticketed()
        try storage.redeem(data)
        #expect(throws: TransferError.self) { try storage.redeem(data) }
        storage.restore(data)
        try storage.redeem(data)
        do throws(TransferError) {
            try storage.redeem(data)
            Issue.record("used twice")
        } catch {
            #expect(error.code == .resumeDataUsed)
        }
    }

    @Test("of many that use a ticket at once one wins")
    func race() throws {
        for _ in 0..<20 {
            let data = try ticketed()
            let wins = Monitor(0)
            let threads = try (0..<8).map { number in
                try WorkerThread(name: "ticket-\(number)") { [storage] in
                    if (try? storage.redeem(data)) != nil { wins.withLock { $0 += 1 } }
                }
            }
            for thread in threads { thread.join() }
            #expect(wins.withLock { $0 } == 1)
        }
    }

    @Test("a generation that is taken is passed over")
    func takenGeneration() throws {
        let id = UUID()
        #expect(storage.issueTicket(for: id, generation: 4)?.generation == 4)
        #expect(storage.issueTicket(for: id, generation: 4)?.generation == 5)
    }

    @Test("data without a ticket may be used as often as its keeper allows")
    func withoutTicket() throws {
        let data = try ResumeData(.uploadSample())
        try storage.redeem(data)
        try storage.redeem(data)
    }

    @Test("a directory that others may write in, a link and a file are refused")
    func unusable() throws {
        let open = directory.path + "/open"
        try FileDescriptor.makeDirectory(open)
        try FileDescriptor.open(open, [.readOnly, .directory]).setPermissions(0o777)
        let link = directory.path + "/link"
        #expect(symlink(directory.path, link) == 0)
        let file = try directory.file("file", [])
        for path in [open, link, file, "relative", ""] {
            do throws(TransferError) {
                _ = try TransferStorage(path: path).open()
                Issue.record("\(path) was opened")
            } catch {
                #expect(error.code == .storageUnusable)
            }
            #expect(TransferStorage(path: path).issueTicket(for: UUID(), generation: 1) == nil)
        }
    }
}
