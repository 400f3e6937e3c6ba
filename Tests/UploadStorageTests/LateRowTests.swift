import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// An upload that is recorded late gets its row when something about it is reported, or at its end.
@Suite(.timeLimit(.minutes(5))) struct LateRowTests {
    private static let content = "content"

    private func create(_ fixture: StoreFixture, _ text: String = Self.content) throws -> (UploadLease, UploadID) {
        let lease = try fixture.store.create(.testing(length: Int64(Self.content.utf8.count)), recordsAtOnce: false)
        try lease.append(text)
        return (lease, try #require(lease.id))
    }

    private func commits(_ fixture: StoreFixture) -> Int { fixture.store.catalog.statistics.commits }

    private func expectNothing(_ fixture: StoreFixture, published: Int64 = 0) throws {
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: published))
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.store.context.newBlobs.isEmpty)
        #expect(fixture.store.sweep() == SweepReport())
    }

    // MARK: Commits

    @Test("an upload without a row that is published under a new name needs one commit", arguments: StoreKind.allCases)
    func oneCommit(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let before = commits(fixture)
        let (lease, id) = try create(fixture)
        try lease.beginProcessing(marksDurably: false)
        #expect(lease.reportableOffset == nil)
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        lease.release()
        #expect(commits(fixture) == before + 1)
        try fixture.reopen()
        guard case .complete(let response) = try fixture.store.record(id).phase else {
            return #expect(Bool(false), "not complete")
        }
        #expect(response.status == 201)
        #expect(try fixture.store.publishedFile(name("x")).readAll() == Array(Self.content.utf8))
        try expectNothing(fixture, published: 7)
    }

    @Test("an empty upload without a row needs one commit", arguments: StoreKind.allCases)
    func empty(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let before = commits(fixture)
        let lease = try fixture.store.create(.testing(length: 0), recordsAtOnce: false)
        #expect(try lease.publish(.testing(name("empty"))).status == 201)
        #expect(commits(fixture) == before + 1)
        try fixture.reopen()
        #expect(try fixture.store.publishedFile(name("empty")).attributes.size == 0)
    }

    @Test(
        "an upload without a row that replaces a file is recorded with the decision", arguments: StoreKind.allCases,
        [0, 7])
    func replacement(_ kind: StoreKind, _ length: Int) throws {
        let fixture = try StoreFixture(kind)
        _ = try create(fixture).0.publish(.testing(name("x")))
        let before = commits(fixture)
        let lease = try fixture.store.create(.testing(length: Int64(length)), recordsAtOnce: false)
        try lease.append(String(repeating: "n", count: length))
        #expect(try lease.publish(.testing(name("x"))).status == 200)
        // A catalog that publishes files needs no decision.
        #expect(commits(fixture) == before + (kind == .cluster ? 1 : 2))
        try fixture.reopen()
        #expect(try fixture.store.publishedFile(name("x")).attributes.size == length)
        // The power loss may have restored the name of the replaced file.
        _ = fixture.store.sweep()
        try expectNothing(fixture, published: Int64(length))
    }

    @Test("an upload without a row whose condition fails stores its final response with one commit")
    func refusedByCondition() throws {
        let fixture = try StoreFixture(.memory)
        let before = commits(fixture)
        let (lease, id) = try create(fixture)
        var publication = Publication.testing(try name("x"))
        publication.condition = { _ in Response(status: 412) }
        #expect(try lease.publish(publication).status == 412)
        #expect(commits(fixture) == before + 1)
        try fixture.reopen()
        #expect(try fixture.store.record(id).phase == .complete(Response(status: 412)))
        try expectNothing(fixture)
    }

    // MARK: Reported offsets

    @Test(
        "OFF-10: an offset of an upload without a row is reported only after its row is durable",
        arguments: StoreKind.allCases)
    func takeOver(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let (lease, id) = try create(fixture, "con")
        let next = try fixture.store.lease(id)
        #expect(next.reportableOffset == nil && !lease.isCurrent)
        #expect(try next.acknowledge() == 3)
        #expect(next.reportableOffset == 3)
        let row = try #require(try fixture.store.catalog.row(id))
        #expect(row.offset == 3 && row.epoch == next.epoch && row.length == 7)
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == 3)
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 7))
        next.release()
        lease.release()
    }

    @Test("OFF-10: offset 0 is reported only after the row is durable")
    func offsetZero() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing(length: 7), recordsAtOnce: false)
        #expect(try lease.acknowledge() == 0)
        try fixture.reopen()
        #expect(try fixture.store.lease(try #require(lease.id)).acknowledged == 0)
    }

    @Test("a cut connection records an upload without a row", arguments: ["", "con"])
    func cut(_ text: String) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture, text)
        lease.release()
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == text.utf8.count)
    }

    @Test("an acknowledgment in the background records an upload without a row")
    func background() async throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture, "con")
        lease.startAcknowledging()
        #expect(try await happens { lease.acknowledged == 3 })
        #expect(try fixture.store.catalog.row(id)?.offset == 3)
        #expect(!fixture.store.context.newBlobs.contains(try #require(try fixture.store.catalog.row(id)).blob))
    }

    @Test("a request that does not wait for the target records an upload without a row before it reports the offset")
    func stillProcessing() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        try lease.beginProcessing(marksDurably: false)
        #expect(try fixture.store.catalog.row(id) == nil)
        guard
            case .processing(let record) = try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
        else { return #expect(Bool(false), "not in processing") }
        #expect(record.offset == 7)
        #expect(try fixture.store.catalog.row(id)?.offset == 7)
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        lease.release()
        try expectNothing(fixture, published: 7)
    }

    @Test(
        "a request that comes during the publication of an upload without a row waits for it, and gets the final response",
        arguments: [FaultPlan.Operation.rename, .synchronizeNames, .commit])
    func duringPublication(_ operation: FaultPlan.Operation) async throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        let begun = Monitor(false)
        let answers = Monitor<[TakeOver]>([])
        fixture.plan.run(before: operation) {
            begun.withLock { $0 = true }
            begun.notifyAll()
            // The other request is waiting.
            let upload = fixture.store.registry.current(id)
            let end = SystemClock.deadline(in: .seconds(30))
            while upload?.monitor.withLock({ $0.machine.waiting.isEmpty }) ?? false,
                SystemClock.monotonicNanoseconds() < end
            {}
        }
        let thread = try WorkerThread(name: "head") {
            begun.waitForever { $0 ? () : nil }
            let taken = try? fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
            answers.withLock { $0 += taken.map { [$0] } ?? [] }
        }
        let before = commits(fixture)
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        thread.join()
        #expect(commits(fixture) == before + 1)
        switch answers.withLock({ $0.first }) {
        case .complete: break
        // The row is durable, and the end of the upload is about to be noted in memory.
        case .processing(let record): #expect(record.offset == 7)
        case .lease, nil: Issue.record("no final response")
        }
    }

    @Test("a target that must not run twice has a row before it runs")
    func markedProcessing() throws {
        let (store, id) = try crash { store, lease in
            try lease.beginProcessing(marksDurably: true)
            #expect(try store.catalog.row(#require(lease.id))?.phase == .processing)
        }
        #expect(try store.record(id).phase == .complete(Response(status: 500)))
        store.close()
    }

    @Test("an early final response and an invalidation are durable", arguments: [false, true])
    func earlyEnd(_ invalidates: Bool) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture, "c")
        if invalidates {
            try lease.invalidate(reason: "because")
        } else {
            try lease.complete(with: Response(status: 400))
        }
        lease.release()
        try fixture.reopen()
        #expect(
            try fixture.store.record(id).phase
                == (invalidates ? .invalid(reason: "because") : .complete(Response(status: 400))))
        #expect(try fixture.store.statistics().complete == (invalidates ? 0 : 1))
        #expect(try fixture.store.statistics().invalid == (invalidates ? 1 : 0))
        try expectNothing(fixture)
    }

    // MARK: Ends without a row

    /// Creates an upload without a row with the content "con", runs `body`, and opens the store again after a power loss.
    private func crash(after body: (UploadStore, UploadLease) throws -> Void) throws -> (UploadStore, UploadID) {
        let plan = FaultPlan()
        let (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
        let configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
        let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
        let lease = try store.create(.testing(length: 7), recordsAtOnce: false)
        try lease.append("con")
        try body(store, lease)
        plan.crash()
        lease.release()
        store.close()
        let next = FaultPlan()
        var generator = SeededGenerator(seed: 1)
        let reopened = try UploadStore(
            catalog: catalog.durableImage(plan: next), area: area.durableImage(using: &generator, plan: next),
            configuration: configuration)
        return (reopened, try #require(lease.id))
    }

    @Test(
        "after a crash an upload without a row of which nothing was reported does not exist", arguments: [false, true])
    func crash(_ isProcessing: Bool) throws {
        let (store, id) = try crash { _, lease in
            if isProcessing { try lease.beginProcessing(marksDurably: false) }
        }
        #expect(throws: StoreError.notFound) { try store.lease(id) }
        #expect(store.usage(of: "alice") == Usage())
        _ = store.sweep()
        #expect(try store.area.sizes().isEmpty)
        #expect(store.sweep() == SweepReport())
        store.close()
    }

    @Test("OFF-10: an offset that a take-over reported survives a crash", arguments: [false, true])
    func crashAfterTakeOver(_ isProcessing: Bool) throws {
        let (store, id) = try crash { store, lease in
            let id = try #require(lease.id)
            if isProcessing {
                try lease.beginProcessing(marksDurably: false)
                guard
                    case .processing(let record) = try store.takeOver(id, principal: "alice", waitForProcessing: .zero)
                else { return #expect(Bool(false), "not in processing") }
                #expect(record.offset == 3)
            } else {
                let head = try store.lease(id)
                #expect(try head.acknowledge() == 3)
            }
        }
        #expect(try store.lease(id).acknowledged == 3)
        store.close()
    }

    @Test("a canceled upload without a row leaves nothing")
    func cancel() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        try fixture.store.cancel(id, principal: "alice")
        #expect(!lease.isCurrent)
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
        lease.release()
        try expectNothing(fixture)
    }

    @Test("the sweep does not remove the bytes of an upload without a row in use, but removes it after it has expired")
    func sweep() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(
            .testing(length: 7, expiresAt: fixture.store.time + 10), recordsAtOnce: false)
        try lease.append("con")
        #expect(fixture.store.sweep() == SweepReport())
        #expect(try fixture.blobCount() == 1)
        fixture.advance(20)
        #expect(fixture.store.sweep() == SweepReport())
        lease.release()
        #expect(fixture.store.sweep().expired == 1)
        try expectNothing(fixture)
    }

    @Test("an upload without a row whose bytes could not be synchronized does not exist any more")
    func failedSynchronization() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture, "con")
        fixture.plan.fail(.synchronize, with: .inputOutput)
        #expect(throws: StoreError.io(.inputOutput, during: "synchronize the content of an upload")) {
            try lease.acknowledge()
        }
        fixture.plan.fail(.synchronize, with: nil)
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
        #expect(lease.reportableOffset == nil)
        lease.release()
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
        try expectNothing(fixture)
    }

    @Test(
        "a publication of an upload without a row that fails is withdrawn, and the upload does not exist any more",
        arguments: [
            [.synchronize], [.synchronizeNames], [.commit], [.synchronize, .commit], [.synchronizeNames, .commit],
        ] as [[FaultPlan.Operation]])
    func failedPublication(_ operations: [FaultPlan.Operation]) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        fixture.plan.fail(operations, after: .setTime, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        #expect(!lease.isCurrent && lease.reportableOffset == nil)
        for operation in operations { fixture.plan.fail(operation, with: nil) }
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
        lease.release()
        #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(name("x")) }
        try expectNothing(fixture)
        try fixture.reopen()
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
    }

    @Test("an upload without a row whose file cannot get its name is kept, and can be published later")
    func failedRename() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        fixture.plan.fail(.rename, with: .readOnlyFileSystem)
        #expect(throws: StoreError.io(.readOnlyFileSystem, during: "rename")) { try lease.publish(.testing(name("x"))) }
        #expect(lease.isCurrent)
        lease.endProcessing()
        #expect(try lease.acknowledge() == 7)
        lease.release()
        fixture.plan.fail(.rename, with: nil)
        try fixture.reopen()
        #expect(try fixture.store.lease(id).publish(.testing(name("x"))).status == 201)
        try expectNothing(fixture, published: 7)
    }

    @Test("the row has a length that was set after the creation")
    func laterLength() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing(), recordsAtOnce: false)
        try lease.append(Self.content)
        try lease.setLength(7)
        _ = try lease.publish(.testing(name("x")))
        try fixture.reopen()
        let id = try #require(lease.id)
        #expect(try fixture.store.record(id).length == 7)
    }

    @Test("OFF-10: the record of an upload without a row is reported only after the row is durable")
    func recordOfOthers() throws {
        let (store, id) = try crash { store, lease in
            let id = try #require(lease.id)
            #expect(try store.record(id).offset == 3)
        }
        #expect(try store.record(id).offset == 3)
        store.close()
    }

    @Test("a commit that was made although it failed is found", arguments: [false, true])
    func failedAfterCommit(_ publishes: Bool) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture)
        fixture.plan.fail(.committed, with: .inputOutput)
        if publishes {
            #expect(try lease.publish(.testing(name("x"))).status == 201)
        } else {
            #expect(throws: Never.self) { try lease.acknowledge() }
        }
        fixture.plan.fail(.committed, with: nil)
        lease.release()
        try fixture.reopen()
        if publishes {
            guard case .complete = try fixture.store.record(id).phase else { return #expect(Bool(false)) }
        } else {
            #expect(try fixture.store.lease(id).acknowledged == 7)
        }
    }

    /// The steps of one upload without a row that is created, acknowledged if `acknowledges` is true, and published.
    @Test(
        "a failure at any step of an upload without a row loses nothing that was reported, and leaves no bytes",
        arguments: [false, true], [false, true])
    func failureAtAnyStep(_ acknowledges: Bool, _ lastsLong: Bool) throws {
        for step in 1...40 {
            let plan = FaultPlan(
                failures: Dictionary(
                    uniqueKeysWithValues: (step...(lastsLong ? step + 3 : step)).map { ($0, Errno.inputOutput) }))
            let (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
            guard
                let store = try? UploadStore(
                    catalog: catalog, area: area, configuration: StoreConfiguration(minFree: 0, processingWait: .zero))
            else { continue }
            var (offset, answer): (Int64?, Response?) = (nil, nil)
            let lease = try? store.create(.testing(length: 7), recordsAtOnce: false)
            if let lease {
                let isAppended = (try? lease.append("con")) != nil
                if acknowledges { offset = try? lease.acknowledge() }
                if isAppended, (try? lease.append("tent")) != nil { answer = try? lease.publish(.testing(name("x"))) }
                lease.release()
            }
            let details = Comment(rawValue: "step \(step) of \(plan.history)")
            while plan.steps < step + 3 { _ = try? area.names() }
            _ = store.sweep()
            _ = store.sweep()
            if let id = lease?.id {
                switch (try? store.takeOver(id, principal: "alice", waitForProcessing: .zero)) {
                case .complete(let record):
                    if let answer { #expect(record.phase == .complete(answer), details) }
                    #expect(area.publishedContents["x"] == Array(Self.content.utf8), details)
                case .lease(let next):
                    #expect(answer == nil && next.acknowledged >= offset ?? 0, details)
                    next.release()
                    try store.cancel(id, principal: "alice")
                case .processing: Issue.record(details)
                case nil: #expect(answer == nil, details)
                }
            }
            let published = area.publishedContents["x"].map { Int64($0.count) } ?? 0
            #expect(store.sweep().failures.isEmpty, details)
            #expect(try area.sizes().isEmpty, details)
            #expect(store.usage(of: "alice").uploads == 0 && store.usage(of: "alice").reservedBytes == 0, details)
            #expect([0, published].contains(store.usage(of: "alice").publishedBytes), details)
            if answer != nil { #expect(store.usage(of: "alice").publishedBytes == published, details) }
            store.close()
        }
    }

    // MARK: Stop

    @Test("a clean stop records the uploads in use that have no row and saves the totals", arguments: [false, true])
    func stop(_ isProcessing: Bool) throws {
        let catalog = CatalogDouble()
        let store = try UploadStore(
            catalog: catalog, area: MemoryBlobArea(),
            configuration: StoreConfiguration(minFree: 0, processingWait: .zero))
        let lease = try store.create(.testing(length: 7), recordsAtOnce: false)
        let id = try #require(lease.id)
        try lease.append("content")
        if isProcessing { try lease.beginProcessing(marksDurably: false) }
        store.close()
        #expect(throws: StoreError.superseded) { try lease.publish(.testing(name("x"))) }
        lease.release()
        let row = try #require(try catalog.row(id))
        #expect(row.offset == 7 && row.phase == .receiving)
        // While the target still processes the upload, the totals are not final.
        let totals = catalog.closingTotals
        if isProcessing {
            #expect(totals == nil)
        } else {
            #expect(totals?.usage == ["alice": Usage(uploads: 1, reservedBytes: 7)])
        }
    }

    @Test("a clean stop records an upload whose lease is released when the stop revokes it")
    func revocation() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try create(fixture, "con")
        let held = Monitor<UploadLease?>(lease)
        lease.onRevocation { held.withLock { $0.take() }?.release() }
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == 3)
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 7))
    }

    @Test("a client that got only the URL finds its upload after a clean stop", arguments: StoreKind.allCases)
    func stopAndStart(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let (lease, id) = try create(fixture, "con")
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == 3)
        lease.release()
    }

    @Test("a plain upload in use at a stop prevents that totals are saved")
    func plainAtStop() throws {
        let catalog = CatalogDouble()
        let store = try UploadStore(
            catalog: catalog, area: MemoryBlobArea(),
            configuration: StoreConfiguration(minFree: 0, processingWait: .zero))
        let lease = try store.createTransient(principal: "alice", length: 7)
        store.close()
        #expect(catalog.closingTotals == nil)
        lease.release()
    }
}
