import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests the store while it counts the uploads after an unclean stop.
@Suite struct CountingTests {
    private struct Fixture {
        let catalog: CatalogDouble
        let store: UploadStore
        /// The IDs of an upload of known length and of an upload of unknown length.
        let ids: [UploadID]

        init(quota: Int64?) throws {
            let (first, area) = (MemoryCatalog(), MemoryBlobArea())
            var configuration = StoreConfiguration(minFree: 0)
            let before = try UploadStore(catalog: first, area: area, configuration: configuration)
            let lengths: [Int64?] = [10, nil]
            ids = try lengths.map { length in
                let lease = try before.create(.testing(length: length))
                defer { lease.release() }
                try lease.append("abc")
                return try #require(lease.id)
            }
            try before.create(.testing()).complete(with: .init(status: 200))
            before.close()
            var generator = SeededGenerator(seed: 1)
            catalog = CatalogDouble(first.durableImage(), countsAtOpening: true)
            configuration.quotaPerPrincipal = quota
            configuration.processingWait = .milliseconds(50)
            store = try UploadStore(
                catalog: catalog, area: area.durableImage(using: &generator), configuration: configuration)
        }
    }

    private func finished(_ thread: Counter) async throws { #expect(try await happens { thread.value == 1 }) }

    @Test("statistics do not wait for the count, and omit the numbers that depend on it")
    func statistics() async throws {
        let fixture = try Fixture(quota: 1000)
        let found = Monitor<StoreStatistics?>(nil)
        let done = Counter()
        let thread = try WorkerThread(name: "client") {
            found.withLock { $0 = try? fixture.store.statistics() }
            done.next()
        }
        try await finished(done)
        fixture.catalog.endCount()
        thread.join()
        let early = try #require(found.withLock { $0 })
        #expect(early.receiving == nil && early.complete == nil && early.invalid == nil)
        #expect(early.publishedBytes == nil && early.reservedBytes == nil)
        #expect(try await happens { (try? fixture.store.statistics())?.receiving == 2 })
        let late = try fixture.store.statistics()
        #expect(late.complete == 1 && late.invalid == 0 && late.reservedBytes == 13)
        fixture.store.close()
    }

    @Test("an append or a declared length that waits for the count delays no other request", arguments: [true, false])
    func waiting(_ isAppend: Bool) async throws {
        let fixture = try Fixture(quota: 20)
        let lease = try fixture.store.lease(fixture.ids[1])
        let (hasBegun, appended, others) = (Counter(), Counter(), Counter())
        let error = Monitor<StoreError?>(nil)
        let writer = try WorkerThread(name: "writer") {
            hasBegun.next()
            do {
                if isAppend { try lease.append("def") } else { try lease.setLength(11) }
            } catch let failure { error.withLock { $0 = failure as? StoreError } }
            appended.next()
        }
        #expect(try await happens { hasBegun.value == 1 })
        // Appends to an upload of known length do not wait for the count.
        let known = try fixture.store.lease(fixture.ids[0])
        try known.append("defg")
        known.release()
        let reader = try WorkerThread(name: "reader") {
            // During this loop the writer begins to wait.
            for _ in 0..<200 {
                _ = try? fixture.store.record(fixture.ids[1])
                SystemClock.pause(nanoseconds: 1_000_000)
            }
            others.next()
        }
        try await finished(others)
        #expect(appended.value == 0)
        fixture.catalog.endCount()
        try await finished(appended)
        writer.join()
        reader.join()
        // The length 10 and three bytes are counted, so 11 bytes are too many.
        #expect(error.withLock { $0 } == (isAppend ? nil : .quotaExceeded(limit: 20)))
        lease.release()
        fixture.store.close()
    }

    @Test("a count that failed for another reason than damage is repeated, and the store reports no damage")
    func repetition() async throws {
        let fixture = try Fixture(quota: 20)
        let reports = Counter()
        fixture.store.onDamage { _ in reports.next() }
        for _ in 0..<2 { fixture.catalog.endCount(.io(.inputOutput, during: "read the catalog")) }
        #expect(try await happens { fixture.catalog.counts == 3 })
        fixture.catalog.endCount()
        #expect(throws: StoreError.quotaExceeded(limit: 20)) { try fixture.store.create(.testing(length: 8)) }
        try fixture.store.create(.testing(length: 7)).release()
        #expect(reports.value == 0 && fixture.store.health().isReady)
        fixture.store.close()
    }

    @Test("closing ends the count and the requests that wait for it")
    func closing() async throws {
        let fixture = try Fixture(quota: 1000)
        let lease = try fixture.store.lease(fixture.ids[1])
        let error = Monitor<StoreError?>(nil)
        let (done, closed) = (Counter(), Counter())
        let writer = try WorkerThread(name: "writer") {
            do { try lease.append("def") } catch let failure { error.withLock { $0 = failure as? StoreError } }
            done.next()
        }
        let creator = try WorkerThread(name: "creator") {
            _ = try? fixture.store.create(.testing(length: 3))
            done.next()
        }
        #expect(try await happens { fixture.catalog.counts == 1 })
        let closer = try WorkerThread(name: "closer") {
            fixture.store.close()
            closed.next()
        }
        #expect(try await happens { done.value == 2 && closed.value == 1 })
        #expect(error.withLock { $0 } == .superseded)
        fixture.catalog.endCount()
        for thread in [writer, creator, closer] { thread.join() }
        lease.release()
    }
}
