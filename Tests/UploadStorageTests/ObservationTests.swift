import SystemCalls
import Testing

@testable import UploadStorage

/// Records every observation of a store.
private final class RecordingObserver: StoreObserver {
    private let steps = Monitor<[(step: DurableStep, isDone: Bool)]>([])

    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool) {
        #expect(nanoseconds >= 0)
        steps.withLock { $0.append((step, isDone)) }
    }

    func count(_ step: DurableStep, isDone: Bool = true) -> Int {
        steps.withLock { $0.count { $0.step == step && $0.isDone == isDone } }
    }
}

@Suite("Reports of a store to its observer", .timeLimit(.minutes(15)))
struct ObservationTests {
    @Test("Each step to stable storage is reported once, with its result", arguments: StoreKind.embedded)
    func steps(kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let recorder = RecordingObserver()
        fixture.store.observe(by: recorder)
        let lease = try fixture.store.create(.testing())
        try lease.append("hello")
        #expect(recorder.count(.content) == 0)
        _ = try lease.acknowledge()
        #expect(recorder.count(.content) == 1)
        #expect(recorder.count(.offset) == 1)
        // There are no new bytes.
        _ = try lease.acknowledge()
        #expect(recorder.count(.content) == 1)
        try lease.setLength(5)
        _ = try lease.publish(.testing(try name("a")))
        #expect(recorder.count(.publication) == 1)
        #expect(recorder.count(.content) == 1, "no bytes were appended since then")
        #expect(recorder.count(.offset) == 2, "the length is new")
        for step in DurableStep.allCases { #expect(recorder.count(step, isDone: false) == 0) }
    }

    @Test("A step that fails is reported as failed")
    func failure() throws {
        let fixture = try StoreFixture(.memory)
        let recorder = RecordingObserver()
        fixture.store.observe(by: recorder)
        let lease = try fixture.store.create(.testing())
        try lease.append("hello")
        fixture.plan.fail(.synchronize, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.acknowledge() }
        #expect(recorder.count(.content, isDone: false) == 1)
        #expect(recorder.count(.content) == 0)
        #expect(recorder.count(.offset) == 0)
    }

    @Test("A step for an upload that was removed during the step is not reported as failed")
    func superseded() throws {
        let fixture = try StoreFixture(.memory)
        let recorder = RecordingObserver()
        fixture.store.observe(by: recorder)
        #expect(throws: StoreError.superseded) {
            try fixture.store.context.observing(.offset) { () throws(StoreError) in throw .superseded }
        }
        #expect(throws: StoreError.insufficientSpace(nil)) {
            try fixture.store.context.observing(.offset) { () throws(StoreError) in throw .insufficientSpace(nil) }
        }
        #expect(recorder.count(.offset) == 1)
        #expect(recorder.count(.offset, isDone: false) == 1)
    }

    @Test("Uploads are counted by state, before and after a restart", arguments: StoreKind.embedded)
    func states(kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let complete = try fixture.store.create(.testing(length: 3))
        try complete.append("abc")
        _ = try complete.publish(.testing(try name("file")))
        let invalid = try fixture.store.create(.testing())
        try invalid.invalidate(reason: "no good")
        let receiving = try fixture.store.create(.testing(length: 100))
        try receiving.append("12345")
        let bytes = try fixture.store.createTransient(principal: "alice", length: 7)
        var statistics = try fixture.store.statistics()
        #expect(statistics.complete == 1)
        #expect(statistics.invalid == 1)
        #expect(statistics.receiving == 1)
        #expect(statistics.processing == 0)
        #expect(statistics.publishedBytes == 3)
        #expect(statistics.reservedBytes == 107)
        #expect(statistics.minFreeBytes == 0)
        #expect((statistics.freeBytes ?? -1) >= 0)
        #expect((statistics.catalogBytes > 0) == (kind == .files))
        #expect(statistics.catalogTransactions > 0)
        for lease in [complete, invalid, receiving, bytes] { lease.release() }
        try fixture.reopen()
        statistics = try fixture.store.statistics()
        #expect(statistics.complete == 1)
        #expect(statistics.invalid == 1)
        #expect(statistics.receiving == 1)
        #expect(statistics.reservedBytes == 100)
        // Removed uploads are no longer counted.
        fixture.advance(1_000_000)
        let report = fixture.store.sweepPart()
        #expect(report.expired == 2)
        #expect(report.unfinished == 0)
        statistics = try fixture.store.statistics()
        #expect(statistics.complete == 0)
        #expect(statistics.invalid == 0)
        #expect(statistics.receiving == 1)
    }

    @Test("The sweep distinguishes unfinished uploads from stored responses", arguments: StoreKind.embedded)
    func expired(kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        try fixture.store.create(.testing(expiresAt: 1_000_010)).release()
        let invalid = try fixture.store.create(.testing())
        try invalid.invalidate(reason: "no good")
        invalid.release()
        fixture.advance(1_000_000)
        let report = fixture.store.sweepPart()
        #expect(report.expired == 2)
        #expect(report.unfinished == 1)
        let statistics = try fixture.store.statistics()
        #expect(statistics.receiving == 0)
        #expect(statistics.invalid == 0)
    }

    @Test("An upload whose acknowledged bytes are missing is reported as lost")
    func lost() throws {
        let fixture = try StoreFixture(.files)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append("hello")
        _ = try lease.acknowledge()
        lease.release()
        #expect(try fixture.store.statistics().lost == 0)
        for name in try fixture.store.area.sizes().keys { try fixture.store.area.remove(name) }
        #expect(throws: StoreError.self) { _ = try fixture.store.lease(id) }
        let statistics = try fixture.store.statistics()
        #expect(statistics.lost == 1)
        #expect(statistics.invalid == 1)
        #expect(statistics.receiving == 0)
    }

    @Test("A store below the minimum of free space is not ready and reports the reason")
    func space() throws {
        let fixture = try StoreFixture(.files) { $0.minFree = .max / 2 }
        #expect(fixture.store.health() == Health(isReady: false, reasons: ["insufficient-space"]))
    }
}
