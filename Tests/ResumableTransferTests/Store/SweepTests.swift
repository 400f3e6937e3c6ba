import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Sweeping a store") struct SweepTests {
    let place: StorePlace

    init() throws {
        place = try StorePlace()
        _ = try place.store.client.storage.open()
    }

    /// Sets the time of the last change to one hour ago.
    private func age(_ path: String) throws {
        let file = try FileDescriptor.open(path, [.readOnly])
        try file.setModified(.init(seconds: SystemClock.realtimeSeconds() - 3600, nanoseconds: 0))
    }

    private func stored() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: place.storage))
    }

    /// A download with a partial file of three bytes.
    private func download(to destination: String?) throws -> (record: ResumeRecord, part: String) {
        var record = ResumeRecord.downloadSample()
        guard case .download(var checkpoint) = record.content else { return (record, "") }
        checkpoint.destination = destination.map { FilePath($0) }
        checkpoint.partialName = PartialFileName.make(for: checkpoint.destination?.lastComponent)
        let folder = checkpoint.destination?.directory.repairedText ?? place.storage
        let part = folder + "/" + checkpoint.partialName.repairedText
        let file = try FileDescriptor.open(part, [.writeOnly, .create])
        try file.write([1, 2, 3], at: 0)
        checkpoint.inode = try file.status().inode
        record.content = .download(checkpoint)
        return (record, part)
    }

    @Test("entries older than the given age are removed with their partial files, and younger entries are kept")
    func entries() async throws {
        let old = try download(to: place.directory.path + "/old.bin")
        let young = try download(to: place.directory.path + "/young.bin")
        let inStorage = try download(to: nil)
        try place.save("old", old.record)
        try place.save("young", young.record)
        try place.save("in storage", inStorage.record)
        try place.save("upload")
        _ = try place.file("damaged.state", [1])
        for name in ["old", "in storage", "upload", "damaged"] { try age(place.path + "/\(name).state") }
        let sweep = await place.store.sweep(olderThan: .seconds(1800))
        #expect(Set(sweep.entries.map(\.name)) == ["old", "in storage", "upload", "damaged"])
        #expect(sweep.files.isEmpty, "\(sweep.files)")
        #expect(access(old.part, F_OK) != 0 && access(inStorage.part, F_OK) != 0 && access(young.part, F_OK) == 0)
        #expect(place.names() == ["young.state"])
        let again = await place.store.sweep(olderThan: .seconds(1800))
        #expect(again == .init())
    }

    @Test("while a state cannot be read, the storage directory is not swept, because the state may need its files")
    func unreadableState() async throws {
        let orphan = try download(to: nil)
        try age(orphan.part)
        let state = try place.file("damaged.state", [1])
        #expect(await place.store.sweep(olderThan: .seconds(1800)) == .init())
        try age(state)
        let sweep = await place.store.sweep(olderThan: .seconds(1800))
        #expect(sweep.entries.map(\.name) == ["damaged"])
        #expect(sweep.files.map(\.path) == [orphan.part])
    }

    @Test("files that killed processes have left are removed, and other files are kept")
    func leftovers() async throws {
        let kept = try download(to: nil)
        let orphan = try download(to: nil)
        try place.save("kept", kept.record)
        let id = UUID()
        let names = ["\(id.uuidString).ticket", "\(kept.record.id.uuidString).ticket", "mine.part", "notes.ticket"]
        for name in names { _ = try place.directory.file("storage/" + name, Array("1".utf8)) }
        for name in ["gone.lock", ".gone.state.tmp", "several-1.done", "notes.txt", ".x.lock"] {
            try age(try place.file(name, [1]))
        }
        for name in try stored() { try age(place.storage + "/" + name) }
        _ = try place.file("new.lock", [1])
        let sweep = await place.store.sweep(olderThan: .seconds(1800))
        #expect(sweep.entries.isEmpty)
        let removed = [
            place.path + "/.gone.state.tmp", place.path + "/gone.lock", place.storage + "/" + names[0], orphan.part,
        ]
        #expect(Set(sweep.files.map(\.path)) == Set(removed))
        #expect(place.names() == [".x.lock", "kept.state", "new.lock", "notes.txt", "several-1.done"])
        #expect(try stored() == Set(names[1...] + [FilePath(kept.part).lastComponent.repairedText]))
    }

    @Test(
        "a sweep synchronizes the directory once, and needs a few operations for each entry",
        .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
    func operations() async throws {
        func operations(_ count: Int) async throws -> [FileOperations.Operation] {
            let place = try StorePlace()
            for number in 0..<count { try place.save("entry-\(number)") }
            let operations = try FileOperations(below: place.path, log: place.directory.path + "/operations")
            try await onThread {
                let sweep = try ChildProcess(
                    try ExecutableLocation.beside("TransferRecipes"), ["store-sweep", place.path],
                    environment: operations.environment())
                #expect(try sweep.awaitEnding() == .exited(0), "\(sweep.errorOutput)")
            }
            #expect(place.names().isEmpty)
            return operations.operations()
        }
        let (few, many) = (try await operations(10), try await operations(210))
        for operations in [few, many] { #expect(operations.filter { $0.name == "sync" }.count == 1) }
        // The lock is created, written and removed, and the state is removed.
        #expect(many.count - few.count == 200 * 6, "\(few)")
    }

    @Test("each age is accepted", arguments: [Int64.min, .max])
    func extremes(_ seconds: Int64) async throws {
        try place.save("x", try download(to: nil).record)
        let sweep = await place.store.sweep(olderThan: .seconds(seconds))
        #expect(sweep.entries.count == (seconds < 0 ? 1 : 0))
    }

    @Test("nothing that a running transfer uses is removed")
    func running() async throws {
        let running = try download(to: nil)
        try place.save("running", running.record)
        _ = try place.file(".running.state.tmp", [1])
        let ticket = UUID().uuidString + ".ticket"
        let held = try FileDescriptor.open(place.storage + "/" + ticket, [.readWrite, .create])
        #expect(try held.tryLock())
        let transfer = try await place.store.resume(#require(await place.store.entry("running")))
        #expect(await place.store.entry("running")?.isRunning == true)
        #expect(await place.store.entry("running")?.process == getpid())
        let sweep = await place.store.sweep(olderThan: .zero)
        #expect(sweep == .init())
        #expect(place.names() == [".running.state.tmp", "running.lock", "running.state"])
        #expect(try stored() == [ticket, FilePath(running.part).lastComponent.repairedText])
        withExtendedLifetime((transfer, held)) {}
    }

    @Test("the partial file of a transfer outside the store is kept while that transfer writes it")
    func otherWriter() async throws {
        let part = try download(to: nil)
        try place.save("x", part.record)
        let writer = try FileDescriptor.open(part.part, [.readWrite])
        #expect(try writer.tryLock())
        let sweep = await place.store.sweep(olderThan: .zero)
        #expect(sweep == .init() && place.names() == ["x.state"])
        withExtendedLifetime(writer) {}
    }

    @Test("a store whose client has no storage directory yet is swept, and no storage directory is created")
    func noStorage() async throws {
        let place = try StorePlace()
        try place.save("x")
        let sweep = await place.store.sweep(olderThan: .zero)
        #expect(sweep.entries.map(\.name) == ["x"])
        #expect(access(place.storage, F_OK) != 0)
    }
}
