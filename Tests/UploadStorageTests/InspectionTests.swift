import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests the inspection of uploads and files that runs in parallel with requests after a start.
@Suite struct InspectionTests {
    /// Copies the data directory, as a killed process leaves it.
    private func killed(_ fixture: StoreFixture) throws -> String {
        let copy = fixture.root + "-copy"
        try FileManager.default.copyItem(atPath: fixture.root, toPath: copy)
        return copy
    }

    @Test(
        "OFF-15: lost bytes are detected by the inspection, or at the first use of the upload",
        arguments: [true, false])
    func losses(_ isUsed: Bool) throws {
        let fixture = try StoreFixture(.files)
        let ids = try (0..<250).map { number in
            let lease = try fixture.store.create(.testing(length: 9))
            try lease.append("abc")
            lease.release()
            return try #require(lease.id)
        }
        let blob = try #require(try fixture.store.catalog.row(ids[77])).blob
        fixture.store.close()
        try fixture.reopen()
        try fixture.store.area.remove(blob)
        let losses = Counter()
        fixture.store.onLoss { _ in losses.next() }
        if isUsed {
            #expect(throws: StoreError.gone(reason: "acknowledged bytes were lost")) {
                try fixture.store.takeOver(ids[77], principal: "alice", waitForProcessing: .zero)
            }
        } else {
            #expect(fixture.store.sweep().failures == [])
        }
        #expect(losses.value == 1)
        #expect(fixture.usage(of: "alice") == Usage(uploads: 249, reservedBytes: 249 * 9))
        #expect(try fixture.store.record(ids[76]).offset == 3)
    }

    @Test("the inspection of published files opens no file")
    func unopened() throws {
        let fixture = try StoreFixture(.memory)
        for number in 0..<3 {
            let lease = try fixture.store.create(.testing())
            try lease.append("abc")
            _ = try lease.publish(.testing(name("d/\(number)")))
            lease.release()
        }
        try fixture.store.area.removePublished(name("d/1"), tagged: "")
        let before = fixture.plan.steps
        #expect(fixture.store.sweep().missingFiles == 1)
        #expect(!fixture.plan.history.dropFirst(before).contains(.open))
    }

    @Test("the parts of a sweep cover all entries, even if entries are removed meanwhile")
    func parts() throws {
        let fixture = try StoreFixture(.files)
        for number in 0..<450 { _ = try fixture.store.area.create("orphan\(number)") }
        let lease = try fixture.store.create(.testing())
        var orphans = 0
        let deadline = SystemClock.monotonicNanoseconds() + 60_000_000_000
        while orphans < 450, SystemClock.monotonicNanoseconds() < deadline {
            orphans += fixture.store.sweepPart().orphans
        }
        #expect(orphans == 450)
        #expect(try fixture.blobCount() == 1)
        lease.release()
        // Everything has been inspected, and nothing is inspected again before the interval is over.
        _ = fixture.store.sweepPart()
        _ = try fixture.store.area.create("late")
        #expect(fixture.store.sweepPart().orphans == 0)
        #expect(fixture.store.sweep().orphans == 1)
    }

    @Test("the quota includes the uploads of a killed process from the first creation on")
    func quota() throws {
        let fixture = try StoreFixture(.files)
        for _ in 0..<30 {
            let lease = try fixture.store.create(.testing(length: 10))
            lease.release()
        }
        let copy = try killed(fixture)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        var configuration = StoreConfiguration(minFree: 0)
        configuration.quotaPerPrincipal = 305
        let store = try UploadStore.open(root: copy, configuration: configuration)
        #expect(throws: StoreError.quotaExceeded(limit: 305)) { try store.create(.testing(length: 6)) }
        try store.create(.testing(length: 5)).release()
        #expect(store.usage(of: "alice") == Usage(uploads: 31, reservedBytes: 305))
        store.close()
        let next = try UploadStore.open(root: copy, configuration: configuration)
        #expect(next.catalog.savedTotals?.usage == ["alice": Usage(uploads: 31, reservedBytes: 305)])
        next.close()
    }

    @Test("the totals that are saved by a stop while a lease exists equal the totals of the rows")
    func heldLease() throws {
        let fixture = try StoreFixture(.files)
        let lease = try fixture.store.create(.testing())
        try lease.append("abc")
        _ = try lease.acknowledge()
        try fixture.reopen()
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 3))
        lease.release()
    }
}
