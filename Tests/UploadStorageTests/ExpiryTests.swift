import HTTPSemantics
import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests that expired uploads are removed in batches, with exact counts, and as fast as uploads arrive.
@Suite struct ExpiryTests {
    private func transactions(_ store: UploadStore) -> Int { store.catalog.statistics.transactions }

    @Test("expired rows are removed in batches, with one transaction for each batch", arguments: [true, false])
    func batches(_ areFinished: Bool) throws {
        let fixture = try StoreFixture(.files) { $0.keepCompleted = .seconds(50) }
        let count = 5 * UploadStore.minRemovalBatch + 7
        for _ in 0..<count {
            let lease = try fixture.store.create(.testing(length: 3, expiresAt: 1_000_040))
            try lease.append("abc")
            if areFinished { try lease.complete(with: Response(status: 200)) }
            lease.release()
        }
        let staying = try fixture.store.create(.testing(length: 3))
        #expect(fixture.store.sweepPart().expired == 0)
        fixture.advance(50)
        let before = transactions(fixture.store)
        let report = fixture.store.sweepPart()
        #expect(report.expired == count && report.failures == [])
        #expect(report.unfinished == (areFinished ? 0 : count))
        // One transaction for each batch, and for finished uploads an additional one that finds nothing.
        #expect(transactions(fixture.store) - before <= 7)
        let statistics = try fixture.store.statistics()
        #expect(statistics.complete == 0 && statistics.receiving == 1)
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 3))
        #expect(try fixture.blobCount() == 1)
        staying.release()
        try fixture.reopen()
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 3))
    }

    @Test("under steady load with a short lifetime of finished uploads the catalog does not grow", arguments: [7])
    func bounded(_ seed: UInt64) throws {
        let fixture = try StoreFixture(.files) { $0.keepCompleted = .seconds(2) }
        var largest: [Int64] = []
        for round in 0..<12 {
            for _ in 0..<150 {
                let lease = try fixture.store.create(.testing(length: 1))
                try lease.append("a")
                try lease.complete(with: Response(status: 200))
                lease.release()
            }
            fixture.advance(1)
            _ = fixture.store.sweepPart()
            let statistics = try fixture.store.statistics()
            #expect(try #require(statistics.complete) <= 300, "round \(round)")
            largest.append(statistics.catalogBytes)
        }
        // Later rounds reuse the pages of the first rounds.
        #expect((largest.last ?? 0) <= (largest.dropFirst(3).first ?? 0) * 5 / 4, "\(largest)")
    }

    @Test("the count of uploads stays exact while they expire and are canceled", arguments: StoreKind.allCases, [1, 2])
    func exactCounts(_ kind: StoreKind, _ seed: UInt64) throws {
        let fixture = try StoreFixture(kind) { $0.keepCompleted = .seconds(0) }
        let store = fixture.store
        let threads = try (0..<3).map { number in
            try WorkerThread(name: "client") {
                var generator = SeededGenerator(seed: seed * 10 + UInt64(number))
                for _ in 0..<80 {
                    guard let lease = try? store.create(.testing()), let id = lease.id else { continue }
                    switch Int.random(in: 0..<3, using: &generator) {
                    case 0: try? lease.complete(with: Response(status: 200))
                    case 1: try? lease.invalidate(reason: "r")
                    default: break
                    }
                    lease.release()
                    if Bool.random(using: &generator) { try? store.cancel(id, principal: "alice") }
                    if Int.random(in: 0..<5, using: &generator) == 0 { _ = store.sweepPart() }
                }
            }
        }
        for thread in threads { thread.join() }
        fixture.advance(1)
        _ = store.sweepPart()
        let statistics = try store.statistics()
        #expect((statistics.complete ?? 0) == 0 && (statistics.invalid ?? 0) == 0)
        #expect(try statistics.receiving == store.catalog.unfinishedRows().count)
    }

    @Test(
        "expired uploads, finished or not, are removed faster than new uploads are created", arguments: [true, false])
    func keepsUp(_ areFinished: Bool) throws {
        let catalog = CatalogDouble()
        var configuration = StoreConfiguration(minFree: 0)
        configuration.keepCompleted = .seconds(-1)
        let store = try UploadStore(catalog: catalog, area: MemoryBlobArea(), configuration: configuration)
        defer { store.close() }
        @Sendable func create(_ count: Int) {
            for _ in 0..<count {
                guard let lease = try? store.create(.testing(expiresAt: 1)) else { continue }
                if areFinished { try? lease.complete(with: Response(status: 200)) }
                lease.release()
            }
        }
        @Sendable func backlog() -> Int { store.usage(of: "alice").uploads + store.finished.complete }
        let rate = 4 * UploadStore.minRemovalBatch
        let batches = Counter()
        let largest = Monitor(0)
        catalog.afterRemoval = {
            batches.next()
            if batches.value <= 12 { create(rate) }
            largest.withLock { $0 = max($0, backlog()) }
        }
        create(rate)
        var expired = 0
        for _ in 0..<100 where backlog() > 0 {
            let report = store.sweepPart()
            #expect(report.failures == [])
            expired += report.expired
        }
        #expect(backlog() == 0 && expired == 13 * rate)
        #expect(largest.withLock { $0 } <= 4 * rate)
    }

    @Test("an upload in use expires like other uploads, but an upload that is being processed does not")
    func inUse() throws {
        let fixture = try StoreFixture(.files)
        let leases = try (0..<10).map { _ in try fixture.store.create(.testing(expiresAt: 1_000_010)) }
        let revocations = Counter()
        for lease in leases {
            lease.onRevocation { revocations.next() }
            try lease.append("abc")
        }
        try leases[3].beginProcessing(shouldMarkDurably: false)
        fixture.advance(20)
        #expect(fixture.store.sweepPart().expired == 9)
        #expect(revocations.value == 9)
        #expect(leases[3].isCurrent)
        try leases[3].complete(with: Response(status: 200))
        #expect(try fixture.blobCount() == 0)
    }

    @Test("a batch that cannot be removed is unchanged and removed later")
    func failure() throws {
        let fixture = try StoreFixture(.memory)
        let ids = try (0..<5).map { _ in
            let lease = try fixture.store.create(.testing(expiresAt: 1_000_010))
            lease.release()
            return try #require(lease.id)
        }
        fixture.advance(20)
        fixture.plan.fail(.commit, with: .inputOutput)
        #expect(!fixture.store.sweepPart().failures.isEmpty)
        fixture.plan.fail(.commit, with: nil)
        #expect(fixture.usage(of: "alice").uploads == 5)
        #expect(fixture.store.sweepPart().expired == 5)
        #expect(fixture.usage(of: "alice") == Usage())
        for id in ids { #expect(throws: StoreError.notFound) { try fixture.store.record(id) } }
    }
}
