import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// An upload that is recorded late gets its row when something about it is reported, or at its end.
@Suite(.timeLimit(.minutes(5))) struct LateRowTests {
    private static let content = "content"

    // MARK: Commits

    @Test("an upload without a row that is published under a new name needs one commit", arguments: StoreKind.allCases)
    func oneCommit(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let before = fixture.commits
        let (lease, id) = try fixture.createLate()
        try lease.beginProcessing(shouldMarkDurably: false)
        #expect(lease.reportableOffset == nil)
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        lease.release()
        #expect(fixture.commits == before + 1)
        try fixture.reopen()
        guard case .complete(let response) = try fixture.store.record(id).phase else {
            return #expect(Bool(false), "not complete")
        }
        #expect(response.status == 201)
        #expect(try fixture.store.publishedFile(name("x")).readAll() == Array(Self.content.utf8))
        try fixture.expectNothing(published: 7)
    }

    @Test("an empty upload without a row needs one commit", arguments: StoreKind.allCases)
    func empty(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let before = fixture.commits
        let lease = try fixture.store.create(.testing(length: 0), shouldRecordAtOnce: false)
        #expect(try lease.publish(.testing(name("empty"))).status == 201)
        #expect(fixture.commits == before + 1)
        try fixture.reopen()
        #expect(try fixture.store.publishedFile(name("empty")).attributes.size == 0)
    }

    @Test(
        "an upload without a row that replaces a file is recorded with the decision", arguments: StoreKind.allCases,
        [0, 7])
    func replacement(_ kind: StoreKind, _ length: Int) throws {
        let fixture = try StoreFixture(kind)
        _ = try fixture.createLate().0.publish(.testing(name("x")))
        let before = fixture.commits
        let lease = try fixture.store.create(.testing(length: Int64(length)), shouldRecordAtOnce: false)
        try lease.append(String(repeating: "n", count: length))
        #expect(try lease.publish(.testing(name("x"))).status == 200)
        // A catalog that publishes files needs no decision.
        #expect(fixture.commits == before + (kind == .cluster ? 1 : 2))
        try fixture.reopen()
        #expect(try fixture.store.publishedFile(name("x")).attributes.size == length)
        // The power loss may have restored the name of the replaced file.
        _ = fixture.store.sweep()
        try fixture.expectNothing(published: Int64(length))
    }

    @Test("an upload without a row whose condition fails stores its final response with one commit")
    func refusedByCondition() throws {
        let fixture = try StoreFixture(.memory)
        let before = fixture.commits
        let (lease, id) = try fixture.createLate()
        var publication = Publication.testing(try name("x"))
        publication.condition = { _ in Response(status: 412) }
        #expect(try lease.publish(publication).status == 412)
        #expect(fixture.commits == before + 1)
        try fixture.reopen()
        #expect(try fixture.store.record(id).phase == .complete(Response(status: 412)))
        try fixture.expectNothing()
    }

    // MARK: Reported offsets

    @Test(
        "OFF-10: an offset of an upload without a row is reported only after its row is durable",
        arguments: StoreKind.allCases)
    func takeOver(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let (lease, id) = try fixture.createLate("con")
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
        let lease = try fixture.store.create(.testing(length: 7), shouldRecordAtOnce: false)
        #expect(try lease.acknowledge() == 0)
        try fixture.reopen()
        #expect(try fixture.store.lease(try #require(lease.id)).acknowledged == 0)
    }

    @Test("a cut connection records an upload without a row", arguments: ["", "con"])
    func cut(_ text: String) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate(text)
        lease.release()
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == text.utf8.count)
    }

    @Test("an acknowledgment in the background records an upload without a row")
    func background() async throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate("con")
        lease.startAcknowledging()
        #expect(try await happens { lease.acknowledged == 3 })
        #expect(try fixture.store.catalog.row(id)?.offset == 3)
        #expect(!fixture.store.context.newBlobs.contains(try #require(try fixture.store.catalog.row(id)).blob))
    }

    @Test("a request that does not wait for the target records an upload without a row before it reports the offset")
    func stillProcessing() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate()
        try lease.beginProcessing(shouldMarkDurably: false)
        #expect(try fixture.store.catalog.row(id) == nil)
        guard
            case .processing(let record) = try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
        else { return #expect(Bool(false), "not in processing") }
        #expect(record.offset == 7)
        #expect(try fixture.store.catalog.row(id)?.offset == 7)
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        lease.release()
        try fixture.expectNothing(published: 7)
    }

    @Test(
        "a request that comes during the publication of an upload without a row waits for it, and gets the final response",
        arguments: [FaultPlan.Operation.rename, .synchronizeNames, .commit])
    func duringPublication(_ operation: FaultPlan.Operation) async throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate()
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
        let before = fixture.commits
        #expect(try lease.publish(.testing(name("x"))).status == 201)
        thread.join()
        #expect(fixture.commits == before + 1)
        switch answers.withLock({ $0.first }) {
        case .complete: break
        // The row is durable, and the end of the upload is about to be noted in memory.
        case .processing(let record): #expect(record.offset == 7)
        case .lease, nil: Issue.record("no final response")
        }
    }

    @Test("a target that must not run twice has a row before it runs")
    func markedProcessing() throws {
        let (store, id) = try storeAfterCrash { store, lease in
            try lease.beginProcessing(shouldMarkDurably: true)
            #expect(try store.catalog.row(#require(lease.id))?.phase == .processing)
        }
        #expect(try store.record(id).phase == .complete(Response(status: 500)))
        store.close()
    }

    @Test("an early final response and an invalidation are durable", arguments: [false, true])
    func earlyEnd(_ invalidates: Bool) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate("c")
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
        try fixture.expectNothing()
    }
}

extension StoreFixture {
    /// Creates an upload of seven bytes that is recorded late.
    func createLate(_ text: String = "content") throws -> (UploadLease, UploadID) {
        let lease = try store.create(.testing(length: 7), shouldRecordAtOnce: false)
        try lease.append(text)
        return (lease, try #require(lease.id))
    }

    var commits: Int { store.catalog.statistics.changes }

    /// Expects that an upload has left nothing.
    func expectNothing(published: Int64 = 0) throws {
        #expect(usage(of: "alice") == Usage(publishedBytes: published))
        #expect(try blobCount() == 0)
        #expect(store.context.newBlobs.isEmpty)
        #expect(store.sweep() == SweepReport())
    }
}

/// Creates an upload without a row with the content "con", runs `body`, and opens the store again after a power loss.
func storeAfterCrash(_ body: (UploadStore, UploadLease) throws -> Void) throws -> (UploadStore, UploadID) {
    let plan = FaultPlan()
    let (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
    let configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
    let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
    let lease = try store.create(.testing(length: 7), shouldRecordAtOnce: false)
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
