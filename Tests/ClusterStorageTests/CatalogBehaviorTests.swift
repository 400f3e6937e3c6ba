import ClusterStorage
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// The behavior that all catalogs have in common.
@Suite struct CatalogBehaviorTests {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case memory, sqlite, cluster
        var testDescription: String { rawValue }

        static let available = allCases.filter { $0 != .cluster || PostgreSQLCluster.isInstalled }
    }

    private func withCatalog(_ kind: Kind, _ body: (any UploadCatalog) throws -> Void) throws {
        switch kind {
        case .memory: try body(MemoryCatalog())
        case .sqlite:
            let directory = try TemporaryDirectory()
            let catalog = try SQLiteCatalog(path: directory.path + "/c", durability: .acknowledged)
            try body(catalog)
            catalog.close(saving: nil)
        case .cluster:
            let fixture = try ClusterFixture()
            try body(try fixture.node())
        }
    }

    private func advance(_ row: CatalogRow, epoch: Int64, offset: Int64, length: Int64? = nil) -> CatalogChange {
        .advance(CatalogChange.Advance(id: row.id, epoch: epoch, offset: offset, length: length, digestStates: [[7]]))
    }

    private func complete(_ row: CatalogRow, _ response: Response) -> CatalogChange {
        .complete(
            CatalogChange.Completion(
                id: row.id, epoch: 2, offset: 5, response: response, expiresAt: 1, file: nil,
                upload: row.upload.withoutFields))
    }

    private func intent() throws -> PublicationIntent {
        PublicationIntent(
            name: try #require(PublishedName(segments: ["a", "b"])), replaced: "t", identity: "1",
            response: Response(status: 201), refused: Response(status: 409))
    }

    @Test("rows are read as they were written, and changes with an older epoch are refused", arguments: Kind.available)
    func rows(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            let row = CatalogRow.testing(length: 9)
            try catalog.storeBytes(of: row)
            try catalog.commit(.insert(row))
            #expect(try catalog.row(row.id) == row)
            #expect(throws: StoreError.invalidState("an upload with this identifier or blob exists")) {
                try catalog.commit(.insert(row))
            }
            try catalog.commit(advance(row, epoch: 3, offset: 7))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 2, offset: 8)) }
            try catalog.commit(advance(row, epoch: 3, offset: 5))
            let current = try #require(try catalog.row(row.id))
            #expect(current.offset == 7 && current.epoch == 3 && current.digestStates == [[7]] && current.length == 9)
            #expect(try catalog.receiving(after: nil, limit: 9).map(\.offset) == (catalog.isShared ? [] : [7]))
            #expect(try catalog.expired(at: 6, limit: 9) == [row.id] && catalog.expired(at: 5, limit: 9) == [])
            #expect(try catalog.isExpiring(after: 5) && !catalog.isExpiring(after: 6))
            #expect(try catalog.needsBlob(row.blob))
            try catalog.commit(
                .invalidate(
                    CatalogChange.Invalidation(
                        id: row.id, epoch: 3, reason: "because", expiresAt: nil, upload: row.upload.withoutFields)))
            #expect(try catalog.row(row.id)?.phase == .invalid(reason: "because"))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 4, offset: 9)) }
            #expect(try !catalog.needsBlob(row.blob))
            let removed = try catalog.commit(.delete([CatalogChange.Removal(id: row.id, epoch: 9)]))
            #expect(removed.invalid == 1 && removed.unfinished == 0)
            #expect(try catalog.row(row.id) == nil)
            #expect(try catalog.commit(.delete([CatalogChange.Removal(id: row.id, epoch: 9)])) == RemovedRows())
            try catalog.commit(.probe)
            catalog.close(saving: nil)
            #expect(throws: StoreError.superseded) { try catalog.commit(.probe) }
        }
    }

    @Test(
        "the processing of an upload is recorded, can be revoked, and ends with the response",
        arguments: Kind.available)
    func processing(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            let row = CatalogRow.testing(offset: 3)
            try catalog.storeBytes(of: row)
            try catalog.commit(.insert(row))
            try catalog.commit(.markProcessing(row.id, epoch: 2))
            #expect(try catalog.row(row.id)?.phase == .processing)
            #expect(try catalog.processing(after: nil, limit: 9) == [row.id])
            #expect(try catalog.processing(after: row.id, limit: 9) == [])
            #expect(try catalog.processingCount() == 1)
            try catalog.commit(advance(row, epoch: 2, offset: 4))
            #expect(try catalog.row(row.id)?.phase == .receiving && catalog.processingCount() == 0)
            let response = Response(status: 201)
            try catalog.commit(complete(row, response))
            let complete = try #require(try catalog.row(row.id))
            #expect(
                complete.phase == .complete(response) && complete.offset == 5 && complete.digestStates == []
            )
            #expect(complete.upload == row.upload.withoutFields && complete.expiresAt == 1)
        }
    }

    @Test(
        "an intent prevents all other changes of the row; a catalog that publishes files records none",
        arguments: Kind.available)
    func intents(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            let row = CatalogRow.testing(offset: 3)
            try catalog.storeBytes(of: row)
            try catalog.commit(.insert(row))
            let intent = try intent()
            if kind == .cluster {
                #expect(throws: StoreError.superseded) {
                    try catalog.commit(.recordIntent(row.id, epoch: 2, intent))
                }
                #expect(throws: StoreError.superseded) { try catalog.commit(.withdraw(row.id, epoch: 2)) }
                return #expect(try catalog.row(row.id) == row)
            }
            #expect(throws: StoreError.superseded) { try catalog.commit(.withdraw(row.id, epoch: 2)) }
            try catalog.commit(.recordIntent(row.id, epoch: 2, intent))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 2, offset: 9)) }
            #expect(throws: StoreError.superseded) { try catalog.commit(.markProcessing(row.id, epoch: 2)) }
            #expect(try catalog.row(row.id)?.intent == intent)
            #expect(try catalog.processingCount() == 1)
            #expect(throws: StoreError.superseded) { try catalog.commit(.withdraw(row.id, epoch: 1)) }
            try catalog.commit(.withdraw(row.id, epoch: 2))
            #expect(try catalog.row(row.id)?.isWithdrawn == true)
            try catalog.commit(complete(row, intent.response))
            let complete = try #require(try catalog.row(row.id))
            #expect(
                complete.phase == .complete(intent.response) && complete.intent == nil
                    && !complete.isWithdrawn)
            #expect(try catalog.processingCount() == 0)
        }
    }

    @Test("a row that is inserted complete is kept until it expires", arguments: Kind.available)
    func lateRows(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            var rows = (0..<5).map { _ in CatalogRow.testing(expiresAt: 10) }
            for index in rows.indices {
                rows[index].phase = index < 4 ? .complete(Response(status: 200)) : .invalid(reason: "r")
                try catalog.commit(.insert(rows[index]))
                #expect(try catalog.row(rows[index].id) == rows[index])
            }
            #expect(try catalog.commit(.removeFinished(expiredBy: 9, limit: 9)) == RemovedRows())
            let first = try catalog.commit(.removeFinished(expiredBy: 10, limit: 2))
            try catalog.commit(.limitExpiry(to: 7, limit: 9))
            let others = try catalog.commit(.removeFinished(expiredBy: 7, limit: 9))
            #expect(first.complete + first.invalid == 2 && others.complete + others.invalid == 3)
            #expect(first.complete + others.complete == 4 && first.unfinished + others.unfinished == 0)
        }
    }

    @Test("a change that fails does not affect others of the same call", arguments: Kind.available)
    func failures(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            let (first, second) = (CatalogRow.testing(), CatalogRow.testing())
            try catalog.storeBytes(of: [first, second])
            try catalog.commit(.probe)
            let outcomes = catalog.commit([
                .insert(first), .insert(second), .insert(first), advance(first, epoch: 2, offset: 3),
                .reporting(advance(second, epoch: 0, offset: 4), [UploadEvent(.created, of: second, at: 7)]),
                .reporting(advance(second, epoch: 1, offset: 5), [UploadEvent(.created, of: second, at: 7)]),
            ])
            let errors = outcomes.map { outcome -> StoreError? in
                if case .failure(let error) = outcome { error } else { nil }
            }
            #expect(
                errors == [
                    nil, nil, .invalidState("an upload with this identifier or blob exists"), nil, .superseded, nil,
                ])
            #expect(try catalog.row(first.id)?.offset == 3 && catalog.row(second.id)?.offset == 5)
            #expect(try catalog.countEvents().waiting == 1)
        }
    }

    @Test("events are recorded, set aside, dropped and counted", arguments: Kind.available)
    func events(_ kind: Kind) throws {
        try withCatalog(kind) { catalog in
            let calls = Counter()
            catalog.onEvents { calls.next() }
            let rows = (0..<5).map { _ in CatalogRow.testing() }
            for row in rows {
                try catalog.commit(
                    .reporting(
                        .insert(row), [UploadEvent(.created, of: row, at: 7), UploadEvent(.completed, of: row, at: 7)]))
            }
            try catalog.commit(
                .delete([
                    CatalogChange.Removal(id: rows[0].id, epoch: 9, event: UploadEvent(.expired, of: rows[0], at: 7)),
                    CatalogChange.Removal(id: UploadID(), epoch: 9, event: UploadEvent(.expired, of: rows[1], at: 7)),
                ]))
            #expect(calls.value >= 6)
            let entries = try #require(
                try pollUntil(within: .seconds(10)) {
                    let entries = try catalog.events(after: 0, limit: 20)
                    return entries.count == 11 ? entries : nil
                })
            let numbers = entries.map(\.number)
            #expect(numbers == numbers.sorted() && Set(numbers).count == 11)
            let kinds: [UploadEvent.Kind] = (0..<5).flatMap { _ in [.created, .completed] } + [.expired]
            #expect(entries.map(\.event.kind) == kinds && catalog.statistics.events == 11)
            #expect(try catalog.events(after: numbers[1], limit: 2).map(\.number) == Array(numbers[2...3]))
            try catalog.commit(.outbox(.remove([numbers[0]])))
            try catalog.commit(.outbox(.setAside([numbers[1], numbers[2]])))
            #expect(try catalog.hasEvent(numbers[3]) && !catalog.hasEvent(numbers[0]) && !catalog.hasEvent(numbers[1]))
            let counted = try catalog.countEvents()
            #expect(counted.waiting == 8 && counted.setAside == 2 && counted.oldest == entries[3].event.time)
            #expect(try catalog.retriedEvents(limit: 9) == [])
            let aside = CatalogChange.outbox(.drop(before: .max, limit: 1, isOnlySetAside: true))
            #expect(try catalog.commit(aside).events == [numbers[1]])
            let old = CatalogChange.outbox(.drop(before: .max, limit: 100, isOnlySetAside: false))
            #expect(try catalog.commit(old).events.sorted() == Array(numbers[2...]))
        }
    }

    @Test("concurrent commits share transactions", arguments: Kind.available)
    func groupCommit(_ kind: Kind) throws {
        if kind == .memory { return }
        try withCatalog(kind) { catalog in
            let rows = (0..<8).map { _ in CatalogRow.testing() }
            try catalog.storeBytes(of: rows)
            let failures = Counter()
            let threads = try rows.map { row in
                try WorkerThread(name: "client") {
                    do throws(StoreError) {
                        try catalog.commit(.insert(row))
                        for offset in 1...25 {
                            try catalog.commit(
                                .advance(
                                    CatalogChange.Advance(
                                        id: row.id, epoch: 1, offset: Int64(offset), length: nil, digestStates: [])))
                        }
                    } catch {
                        failures.next()
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(failures.value == 0)
            #expect(catalog.statistics.changes == 8 * 26)
            #expect(catalog.statistics.transactions < catalog.statistics.changes)
            #expect(try rows.allSatisfy { try catalog.row($0.id)?.offset == 25 })
        }
    }
}
