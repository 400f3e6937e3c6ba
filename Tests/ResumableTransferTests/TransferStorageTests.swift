import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite struct TransferStorageTests {
    let directory: TemporaryDirectory
    let storage: TransferStorage

    init() throws {
        directory = try TemporaryDirectory()
        storage = TransferStorage(path: FilePath(directory.path + "/state/onward/transfers"))
    }

    private func ticketed() throws -> ResumeData {
        var record = ResumeRecord.uploadSample(hasTicket: true)
        let ticket = try #require(storage.issueTicket(for: record.id, generation: record.generation + 1))
        record.generation = ticket.generation
        return try ResumeData(record)
    }

    @Test("only the owner can access the created directory, for every umask")
    func mode() throws {
        let opened = try storage.open()
        #expect(try opened.status().permissions == 0o700)
        #expect(try storage.open().status().inode == opened.status().inode)
    }

    private func claim(_ data: ResumeData) throws(TransferError) -> TicketClaim? {
        try storage.claim(
            ResumeTicket(id: data.record.id, generation: data.record.generation), hasTicket: data.record.hasTicket)
    }

    private func expectUsed(_ data: ResumeData, sourceLocation: SourceLocation = #_sourceLocation) {
        do throws(TransferError) {
            _ = try claim(data)
            Issue.record("claimed", sourceLocation: sourceLocation)
        } catch {
            #expect(error.code == .resumeDataUsed, sourceLocation: sourceLocation)
        }
    }

    /// The resume data that a later pause of the same transfer issues.
    private func next(_ data: ResumeData) throws -> ResumeData {
        var record = data.record
        let ticket = try #require(storage.issueTicket(for: record.id, generation: record.generation + 1))
        record.generation = ticket.generation
        record.hasTicket = true
        return try ResumeData(record)
    }

    @Test("only one transfer at a time can use resume data; after its interruption another transfer can use the data")
    func oneAtATime() throws {
        let data = try ticketed()
        var first = try claim(data)
        #expect(first != nil)
        expectUsed(data)
        // Examining the data does not use it.
        try storage.requireUnused(data)
        first = nil
        #expect(try claim(data) != nil)
    }

    @Test("resume data stays valid until later data of the same transfer is used")
    func succession() throws {
        let first = try ticketed()
        let second = try next(first)
        #expect(first != second)
        #expect(try claim(first) != nil)
        #expect(try claim(second) != nil)
        expectUsed(first)
        #expect(throws: TransferError.self) { try storage.requireUnused(first) }
        // Resume data that an old process issues after the use of `second` is valid.
        let third = try next(first)
        #expect(third.record.generation >= second.record.generation)
        #expect(try claim(third) != nil)
    }

    @Test("resume data is invalid after the end of its transfer")
    func end() throws {
        let first = try ticketed()
        let second = try next(first)
        try #require(try claim(second)).remove()
        expectUsed(first)
        expectUsed(second)
        #expect(throws: TransferError.self) { try storage.requireUnused(second) }
    }

    @Test("if many threads claim a transfer at the same time, exactly one claim succeeds")
    func race() throws {
        for _ in 0..<20 {
            let data = try ticketed()
            let claims = Monitor<[TicketClaim]>([])
            let threads = try (0..<8).map { number in
                try WorkerThread(name: "ticket-\(number)") { [storage] in
                    let ticket = ResumeTicket(id: data.record.id, generation: data.record.generation)
                    if let claim = try? storage.claim(ticket, hasTicket: true) {
                        claims.withLock { $0.append(claim) }
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(claims.withLock { $0.count } == 1)
        }
    }

    @Test(
        "resume data without a ticket is usable repeatedly, but not while or after other data of the transfer is used")
    func withoutTicket() throws {
        let data = try ResumeData(.uploadSample())
        var claimed = try claim(data)
        #expect(claimed != nil)
        expectUsed(data)
        claimed = nil
        claimed = try claim(data)
        #expect(claimed != nil)
        claimed = nil
        let later = try next(data)
        claimed = try claim(later)
        expectUsed(data)
        claimed?.remove()
        claimed = nil
        claimed = try claim(data)
        expectUsed(later)
        claimed = nil
        #expect(try claim(next(data)) != nil)
        // Resume data with a ticket of the same generation is invalid because that generation was used.
        var record = data.record
        record.hasTicket = true
        expectUsed(try ResumeData(record))
    }

    @Test("if many threads claim and end a transfer without a ticket, at most one claim exists at a time")
    func raceWithoutTicket() throws {
        let data = try ResumeData(.uploadSample())
        let ticket = ResumeTicket(id: data.record.id, generation: data.record.generation)
        let counts = Monitor((running: 0, most: 0, ended: 0))
        let threads = try (0..<8).map { number in
            try WorkerThread(name: "claim-\(number)") { [storage] in
                while counts.withLock({ $0.ended }) < 200 {
                    guard let claim = try? storage.claim(ticket, hasTicket: false) else { continue }
                    counts.withLock { counts in
                        counts.running += 1
                        counts.most = max(counts.most, counts.running)
                    }
                    counts.withLock { counts in
                        counts.running -= 1
                        counts.ended += 1
                    }
                    claim.remove()
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(counts.withLock { $0.most } == 1)
    }

    @Test("resume data without a ticket is valid even if no file can be created")
    func noFile() throws {
        let storage = TransferStorage(path: "/proc/none")
        let data = try ResumeData(.uploadSample())
        #expect(
            try storage.claim(
                ResumeTicket(id: data.record.id, generation: data.record.generation), hasTicket: false)
                == nil)
    }

    @Test("a ticket file without a number invalidates no resume data", arguments: ["", "x", "99999999999999999999999"])
    func damagedTicket(text: String) throws {
        let data = try ticketed()
        let path = storage.path.repairedText + "/" + (try #require(data.record.ticket)).fileName
        try Data(text.utf8).write(to: URL(filePath: path))
        #expect(try claim(data) != nil)
    }

    @Test("a directory that others can write to, a link and a file are rejected")
    func unusable() throws {
        let open = directory.path + "/open"
        try FileDescriptor.makeDirectory(open)
        try FileDescriptor.open(open, [.readOnly, .directory]).setPermissions(0o777)
        let link = directory.path + "/link"
        #expect(symlink(directory.path, link) == 0)
        let file = try directory.file("file", [])
        for path in [open, link, file, "relative", "", directory.path + "/a\0b"] {
            do throws(TransferError) {
                _ = try TransferStorage(path: FilePath(path)).open()
                Issue.record("\(path) was opened")
            } catch {
                #expect(error.code == .storageUnusable)
                #expect(error.message.contains("belong to you") == (path == open))
            }
            #expect(TransferStorage(path: FilePath(path)).issueTicket(for: UUID(), generation: 1) == nil)
        }
    }
}
