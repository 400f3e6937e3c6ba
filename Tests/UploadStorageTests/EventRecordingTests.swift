import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests that each change of an upload records its events, in the transaction of the change.
@Suite struct EventRecordingTests {
    private func fixture(_ kind: StoreKind) throws -> StoreFixture {
        try StoreFixture(kind) {
            $0.shouldRecordEvents = true
            $0.keepCompleted = .seconds(50)
        }
    }

    private func events(_ fixture: StoreFixture) throws -> [UploadEvent] {
        // In a cluster, events can be read when all earlier transactions have ended.
        let events = try pollUntil(within: .seconds(10)) {
            let events = try fixture.store.events(after: 0, limit: 1000)
            return try events.count == fixture.store.catalog.countEvents().waiting ? events : nil
        }
        return try #require(events).map(\.event)
    }

    private func kinds(_ fixture: StoreFixture) throws -> [UploadEvent.Kind] { try events(fixture).map(\.kind) }

    @Test("an upload is created and completed", arguments: StoreKind.allCases, [true, false])
    func completed(_ kind: StoreKind, _ shouldRecordAtOnce: Bool) throws {
        let fixture = try fixture(kind)
        let lease = try fixture.store.create(.testing(length: 3), shouldRecordAtOnce: shouldRecordAtOnce)
        #expect(try kinds(fixture) == (shouldRecordAtOnce ? [.created] : []))
        try lease.append("abc")
        _ = try lease.publish(.testing(name("dir/a.txt")))
        let events = try events(fixture)
        #expect(events.map(\.kind) == [.created, .completed])
        let id = try #require(lease.id)
        for event in events {
            #expect(event.upload == id.fingerprint && event.principal == "alice" && event.method == "PUT")
            #expect(event.target == "/files/x" && event.length == 3 && event.fields == ["Content-Type": "text/plain"])
            #expect(!event.id.contains(id.text) && event.reason == nil)
        }
        #expect(events[0].id != events[1].id)
        #expect(events[1].status == 201 && events[1].file == "dir/a.txt")
        #expect(events[0].status == nil && events[0].file == nil)
        try fixture.reopen { $0.shouldRecordEvents = true }
        #expect(try self.events(fixture) == events)
    }

    @Test(
        "the status of the final response decides between completed and refused", arguments: StoreKind.allCases,
        [(200, .completed), (303, .completed), (404, .refused), (500, .refused)] as [(Int, UploadEvent.Kind)])
    func status(_ kind: StoreKind, _ expected: (status: Int, kind: UploadEvent.Kind)) throws {
        let fixture = try fixture(kind)
        let lease = try fixture.store.create(.testing())
        try lease.append("abcd")
        try lease.complete(with: Response(status: Status(rawValue: expected.status)))
        let events = try events(fixture)
        #expect(events.map(\.kind) == [.created, expected.kind])
        #expect(events.last?.status == expected.status && events.last?.length == 4)
    }

    @Test("an upload that becomes invalid is refused, with the reason", arguments: StoreKind.allCases)
    func invalid(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        let lease = try fixture.store.create(.testing(length: 3))
        try lease.invalidate(reason: "its length is wrong")
        let events = try events(fixture)
        #expect(events.map(\.kind) == [.created, .refused])
        #expect(events.last?.reason == "its length is wrong" && events.last?.status == nil)
    }

    @Test("an unfinished upload is canceled; the removal of a finished one is no event", arguments: StoreKind.allCases)
    func canceled(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        let unfinished = try fixture.store.create(.testing(length: 3))
        try fixture.store.cancel(try #require(unfinished.id), principal: "alice")
        #expect(try kinds(fixture) == [.created, .canceled])
        let finished = try fixture.store.create(.testing(length: 0))
        try finished.complete(with: Response(status: 200))
        finished.release()
        try fixture.store.cancel(try #require(finished.id), principal: "alice")
        #expect(try kinds(fixture) == [.created, .canceled, .created, .completed])
    }

    @Test("unfinished uploads expire; the end of a stored response is no event", arguments: StoreKind.allCases)
    func expired(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        for _ in 0..<3 { try fixture.store.create(.testing(length: 3, expiresAt: 1_000_040)).release() }
        let used = try fixture.store.create(.testing(length: 3, expiresAt: 1_000_040))
        let finished = try fixture.store.create(.testing(length: 0, expiresAt: 1_000_040))
        try finished.complete(with: Response(status: 200))
        fixture.advance(60)
        #expect(fixture.store.sweepPart().expired == 5)
        withExtendedLifetime(used) {}
        let kinds = try kinds(fixture)
        #expect(kinds.prefix(6) == [.created, .created, .created, .created, .created, .completed])
        #expect(kinds.dropFirst(6) == [.expired, .expired, .expired, .expired])
        #expect(Set(try events(fixture).suffix(4).map(\.upload)).count == 4)
    }

    @Test("a plain upload is reported when its file is published", arguments: StoreKind.allCases, [false, true])
    func plain(_ kind: StoreKind, _ replaces: Bool) throws {
        let fixture = try fixture(kind)
        for round in 0...(replaces ? 1 : 0) {
            let lease = try fixture.store.createTransient(.testing(length: 3))
            try lease.append("abc")
            _ = try lease.publish(.testing(name("a.txt")))
            let events = try events(fixture)
            #expect(events.map(\.kind) == Array(repeating: .completed, count: round + 1))
            #expect(events.last?.status == (round == 0 ? 201 : 200) && events.last?.file == "a.txt")
        }
        let unfinished = try fixture.store.createTransient(.testing(length: 3))
        try unfinished.append("a")
        unfinished.release()
        #expect(try kinds(fixture).count == (replaces ? 2 : 1))
    }

    @Test(
        "a plain upload whose event cannot be recorded is not acknowledged, and its file is removed",
        arguments: [false, true])
    func unrecordable(_ shouldRecordEvents: Bool) throws {
        let fixture = try StoreFixture(.memory) { $0.shouldRecordEvents = shouldRecordEvents }
        let lease = try fixture.store.createTransient(.testing(length: 3))
        try lease.append("abc")
        fixture.plan.fail([.commit], after: .rename, with: .inputOutput)
        let response = try? lease.publish(.testing(name("a.txt")))
        lease.release()
        fixture.plan.fail(.commit, with: nil)
        _ = fixture.store.sweep()
        // Without events the file is only missing in the usage of its principal.
        #expect((response != nil) == !shouldRecordEvents)
        let isPublished = (try? fixture.store.publishedFile(name("a.txt"))) != nil
        #expect(isPublished == !shouldRecordEvents)
        #expect(try kinds(fixture).isEmpty && fixture.blobCount() == 0)
    }

    @Test("an interrupted publication is reported by the start that completes it", arguments: StoreKind.allCases)
    func interrupted(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        let lease = try fixture.store.create(.testing(length: 0))
        try lease.beginProcessing(shouldMarkDurably: true)
        try fixture.reopen { $0.shouldRecordEvents = true }
        #expect(try fixture.sweep(until: { try kinds(fixture) == [.created, .refused] }))
        #expect(try events(fixture).last?.status == 500)
    }

    @Test("without the setting nothing is recorded", arguments: StoreKind.allCases)
    func disabled(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(length: 0))
        try lease.complete(with: Response(status: 200))
        #expect(try events(fixture).isEmpty)
        #expect(try fixture.store.statistics().events == nil)
    }

    @Test("a change that fails records no event", arguments: StoreKind.allCases)
    func failing(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        let lease = try fixture.store.create(.testing(length: 3))
        let other = try fixture.store.catalog.row(try #require(lease.id))
        let row = try #require(other)
        let change = CatalogChange.invalidate(
            CatalogChange.Invalidation(id: row.id, epoch: 0, reason: "stale", expiresAt: nil, upload: row.upload))
        #expect(throws: StoreError.self) {
            try fixture.store.catalog.commit(.reporting(change, [UploadEvent(.refused, of: row, at: 7)]))
        }
        #expect(try kinds(fixture) == [.created])
    }

    @Test("the target is stored without its query, and long values are limited")
    func sizes() throws {
        let fixture = try fixture(.files)
        var upload = NewUpload.testing(length: 1)
        upload.target = "/app/x?token=SECRET"
        upload.fields = ["Content-Type": String(repeating: "x", count: 5000), "X-Key": "SECRET"]
        _ = try fixture.store.create(upload)
        upload.target = "/" + String(repeating: "ä", count: 5000)
        _ = try fixture.store.create(upload)
        let events = try events(fixture)
        #expect(events[0].target == "/app/x" && events[0].fields.isEmpty)
        #expect(events[1].target.utf8.count <= 2051)
    }

    // MARK: The outbox

    @Test("events are delivered, set aside, retried, dropped and counted", arguments: StoreKind.allCases)
    func outbox(_ kind: StoreKind) throws {
        let fixture = try fixture(kind)
        let store = fixture.store
        let calls = Monitor(0)
        store.onEvents { calls.withLock { $0 += 1 } }
        for _ in 0..<6 { _ = try store.create(.testing(length: 1)) }
        #expect(calls.withLock { $0 } >= 6)
        #expect(try events(fixture).count == 6)
        let numbers = try store.events(after: 0, limit: 10).map(\.number)
        #expect(numbers == numbers.sorted() && numbers.count == 6)
        #expect(try store.events(after: numbers[1], limit: 2).map(\.number) == Array(numbers[2...3]))
        try store.updateEvents(delivered: [numbers[0]], setAside: [numbers[1], numbers[2]])
        #expect(try store.events(after: 0, limit: 10).map(\.number) == Array(numbers[3...]))
        #expect(try store.hasEvent(numbers[3]))
        #expect(try !store.hasEvent(numbers[0]) && !store.hasEvent(numbers[1]))
        var counts = try #require(store.eventStatistics)
        #expect(counts.waiting == 3 && counts.setAside == 2 && counts.recorded == 6 && counts.oldest != nil)
        // A server of a cluster drops events once it has found that it is the one that delivers them.
        let dropped = try pollUntil(within: .seconds(10)) {
            let dropped = try store.dropEvents(olderThan: 0, keeping: 4)
            return dropped.isEmpty ? nil : dropped
        }
        #expect(dropped == [numbers[1]])
        #expect(try store.dropEvents(olderThan: .max, isOnlySetAside: true, keeping: 100) == [numbers[2]])
        #expect(try store.dropEvents(olderThan: .max, keeping: 100) == Array(numbers[3...]))
        counts = try #require(store.eventStatistics)
        #expect(counts.waiting == 0 && counts.setAside == 0 && counts.dropped == 5 && counts.oldest == nil)
    }

    @Test("a number is never used again, even if the outbox was empty")
    func numbers() throws {
        let fixture = try fixture(.files)
        _ = try fixture.store.create(.testing(length: 1))
        let first = try #require(try fixture.store.events(after: 0, limit: 1).first).number
        try fixture.store.updateEvents(delivered: [first], setAside: [])
        _ = try fixture.store.create(.testing(length: 1))
        #expect(try fixture.store.events(after: first, limit: 1).count == 1)
    }

    @Test("another process lists, retries and drops events while the store is open")
    func otherProcess() throws {
        let fixture = try fixture(.files)
        for _ in 0..<700 { _ = try fixture.store.create(.testing(length: 1)) }
        let numbers = try fixture.store.events(after: 0, limit: 1000).map(\.number)
        try fixture.store.updateEvents(delivered: [], setAside: Array(numbers.prefix(3)))
        let recorded = try RecordedEvents(root: fixture.root)
        var seen: [Int64] = []
        try recorded.forEach { seen.append($0.number) }
        #expect(seen == numbers)
        try recorded.retry(Array(numbers.prefix(5)))
        #expect(try fixture.store.retriedEvents(limit: 10).map(\.number) == Array(numbers.prefix(3)))
        #expect(try fixture.store.events(after: 0, limit: 1000).map(\.number) == numbers)
        try recorded.drop(Array(numbers.dropFirst(300)))
        #expect(fixture.store.eventStatistics?.waiting == 300)
        _ = try fixture.store.create(.testing(length: 1))
        #expect(fixture.store.eventStatistics?.waiting == 301)
        #expect(throws: StoreError.self) { try RecordedEvents(root: fixture.root + "/uploads") }
    }
}
