import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct StoreCopyTests {
    private static let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// A closed store in memory, with files, unfinished and finished uploads, and events.
    private struct Source {
        let catalog = MemoryCatalog()
        let area = MemoryBlobArea()
        var unfinished: [UploadID: Int] = [:]
        var finished: [UploadID] = []

        init() throws {
            let store = try UploadStore(
                catalog: catalog, area: area,
                configuration: StoreConfiguration(minFree: 0, shouldRecordEvents: true))
            for (index, path) in ["a", "d/b", "d/e/c"].enumerated() {
                let lease = try store.create(.testing())
                try lease.append(Array(content[..<(index * 140_000)]))
                _ = try lease.publish(.testing(name(path)))
                finished.append(try #require(lease.id))
            }
            for count in [0, 5, 250_000] {
                let lease = try store.create(
                    .testing(length: 290_000, digests: [.sha256], expiresAt: store.time + 500))
                try lease.append(Array(content[..<count]))
                unfinished[try #require(lease.id)] = count
                lease.release()
            }
            store.close()
        }
    }

    private func place(_ catalog: MemoryCatalog, _ area: MemoryBlobArea, time: Int64 = 1000) -> StoreCopy.Place {
        StoreCopy.Place(catalog: catalog, area: area, time: time)
    }

    private func expectCopy(_ source: Source, _ catalog: MemoryCatalog, _ area: MemoryBlobArea) throws {
        var generator = SeededGenerator(seed: 3)
        // Everything is durable.
        let store = try UploadStore(
            catalog: catalog.durableImage(), area: area.durableImage(using: &generator),
            configuration: StoreConfiguration(minFree: 0, shouldRecordEvents: true))
        defer { store.close() }
        for (index, path) in ["a", "d/b", "d/e/c"].enumerated() {
            let file = try store.publishedFile(name(path))
            #expect(try file.readAll() == Array(Self.content[..<(index * 140_000)]))
        }
        #expect(store.usage(of: "alice").publishedBytes == 420_000)
        for (id, count) in source.unfinished {
            let lease = try store.lease(id)
            #expect(lease.received == Int64(count))
            try lease.append(Array(Self.content[count..<290_000]))
            #expect(try lease.representationDigest(.sha256) == digest(Array(Self.content[..<290_000])))
            lease.release()
        }
        for id in source.finished {
            guard case .complete = try store.record(id).phase else {
                Issue.record("a final response is missing")
                continue
            }
        }
        #expect(
            try catalog.events(after: 0, limit: 100).map(\.event)
                == source.catalog.events(after: 0, limit: 100).map(\.event))
    }

    @Test("a copy has all files, uploads, responses and events, and a second run copies nothing")
    func copy() throws {
        let source = try Source()
        let (catalog, area) = (MemoryCatalog(), MemoryBlobArea())
        // The clock of the target is 200 s later.
        let target = place(catalog, area, time: 1200)
        var copy = StoreCopy(from: place(source.catalog, source.area), to: target)
        let report = try copy.run()
        #expect(report.problems == [])
        #expect((report.files, report.uploads, report.responses) == (3, 3, 3))
        #expect(report.bytes == 420_000 + 250_005)
        for id in source.unfinished.keys {
            let (old, new) = (try source.catalog.row(id), try catalog.row(id))
            #expect(new?.expiresAt == (old?.expiresAt).map { $0 + 200 })
        }
        var again = StoreCopy(from: place(source.catalog, source.area), to: target)
        let second = try again.run()
        #expect((second.files, second.uploads, second.responses, second.events) == (0, 0, 0, 0))
        try expectCopy(source, catalog, area)
    }

    @Test("a copy that was interrupted at any step is completed by a second run", arguments: 0..<12)
    func interrupted(_ part: Int) throws {
        let source = try Source()
        let plan = FaultPlan()
        let (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
        plan.crash(inSteps: part * 4)
        var copy = StoreCopy(from: place(source.catalog, source.area), to: place(catalog, area))
        #expect(throws: StoreError.self) { _ = try copy.run() }
        var generator = SeededGenerator(seed: UInt64(part))
        let (nextCatalog, nextArea) = (catalog.durableImage(), area.durableImage(using: &generator))
        var again = StoreCopy(from: place(source.catalog, source.area), to: place(nextCatalog, nextArea))
        #expect(try again.run().problems == [])
        try expectCopy(source, nextCatalog, nextArea)
    }

    @Test("a second run reports the uploads that a server has continued in the source meanwhile")
    func continued() throws {
        let source = try Source()
        let (catalog, area) = (MemoryCatalog(), MemoryBlobArea())
        var first = StoreCopy(from: place(source.catalog, source.area), to: place(catalog, area))
        #expect(try first.run().problems == [])
        var generator = SeededGenerator(seed: 1)
        let (nextCatalog, nextArea) = (source.catalog.durableImage(), source.area.durableImage(using: &generator))
        let store = try UploadStore(
            catalog: nextCatalog, area: nextArea,
            configuration: StoreConfiguration(minFree: 0, shouldRecordEvents: true))
        let id = try #require(source.unfinished.first { $0.value == 5 }?.key)
        let lease = try store.lease(id)
        try lease.append("more")
        #expect(try lease.acknowledge() == 9)
        lease.release()
        store.close()
        var second = StoreCopy(from: place(nextCatalog, nextArea), to: place(catalog, area))
        let problems = try second.run().problems
        #expect(problems.count == 1 && problems.first?.hasPrefix("\(id): ") == true, "\(problems)")
    }

    @Test("a server that uses the target can continue an upload as soon as it is copied")
    func release() throws {
        let source = try Source()
        let (holds, area) = (SharedHolds(), MemoryBlobArea())
        let target = StoreCopy.Place(catalog: NodeCatalog(holds, node: 0), area: area, time: 1000)
        let server = NodeCatalog(holds, node: 1)
        var copy = StoreCopy(from: place(source.catalog, source.area), to: target)
        #expect(try copy.run().uploads == 3)
        for (id, count) in source.unfinished {
            #expect(try server.acquire(id, until: 0)?.row.offset == Int64(count))
        }
    }

    @Test("a file that would replace another one is reported, and everything else is copied")
    func conflict() throws {
        let source = try Source()
        let (catalog, area) = (MemoryCatalog(), MemoryBlobArea())
        let store = try UploadStore(catalog: catalog, area: area, configuration: StoreConfiguration(minFree: 0))
        let lease = try store.create(.testing())
        try lease.append("other")
        _ = try lease.publish(.testing(name("d/b")))
        store.close()
        let (openCatalog, openArea) = (catalog.durableImage(), area)
        var copy = StoreCopy(from: place(source.catalog, source.area), to: place(openCatalog, openArea))
        let report = try copy.run()
        #expect(report.problems.count == 1 && report.problems.first?.hasPrefix("d/b: ") == true)
        #expect(report.files == 2)
    }
}
