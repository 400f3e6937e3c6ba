import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Failures of the bytes, the rows and the disk. Failures of publications are in `UnsettledPublicationTests` and
/// `PublicationFaultTests`.
@Suite struct FaultTests {
    @Test("OFF-18: bytes that could not be synchronized are discarded, never acknowledged by a second attempt")
    func failedSynchronization() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        let revocations = Counter()
        lease.onRevocation { revocations.next() }
        try lease.append("abc")
        #expect(try lease.acknowledge() == 3)
        try lease.append("def")
        fixture.plan.fail(.synchronize, with: .inputOutput)
        #expect(throws: StoreError.io(.inputOutput, during: "synchronize the content of an upload")) {
            try lease.acknowledge()
        }
        fixture.plan.fail(.synchronize, with: nil)
        #expect(throws: StoreError.superseded) { try lease.acknowledge() }
        #expect(throws: StoreError.superseded) { try lease.append("ghi") }
        // The holder of the lease has received the error, so it is not notified of the end of the lease.
        #expect(revocations.value == 0 && !lease.isCurrent)
        let next = try fixture.store.lease(id)
        #expect(next.received == 3)
        try next.append("DEF")
        #expect(try next.acknowledge() == 6)
        next.release()
        lease.release()
        try fixture.reopen()
        #expect(try fixture.store.lease(id).readAll() == Array("abcDEF".utf8))
    }

    @Test("a failed background synchronization revokes the lease of a request that continues to send")
    func failedBackgroundSynchronization() async throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing())
        let revocations = Counter()
        lease.onRevocation { revocations.next() }
        try lease.append("abc")
        fixture.plan.fail(.synchronize, with: .inputOutput)
        lease.startAcknowledging()
        #expect(try await happens { revocations.value == 1 })
        #expect(throws: StoreError.superseded) { try lease.append("def") }
    }

    @Test("after a failed background synchronization of the last bytes no request waits for processing")
    func failedBackgroundSynchronizationAtTheEnd() throws {
        for _ in 0..<200 {
            let fixture = try StoreFixture(.memory)
            let lease = try fixture.store.create(.testing())
            let id = try #require(lease.id)
            try lease.append("abc")
            #expect(try lease.acknowledge() == 3)
            try lease.append("d")
            fixture.plan.fail(.synchronize, with: .inputOutput)
            lease.startAcknowledging()
            // The background thread may fail before, during or after this call.
            #expect(throws: StoreError.self) {
                try Array("ef".utf8).withUnsafeBytes { try lease.append($0, completes: true) }
                try lease.beginProcessing(shouldMarkDurably: true)
            }
            fixture.plan.fail(.synchronize, with: nil)
            lease.release()
            let next = try fixture.store.lease(id)
            #expect(next.received == 3)
            next.release()
        }
    }

    @Test("a length that could not be recorded uses no quota")
    func failedLength() throws {
        let fixture = try StoreFixture(.memory) { $0.quotaPerPrincipal = 1000 }
        let first = try fixture.store.create(.testing())
        let id = try #require(first.id)
        try first.append("abc")
        first.release()
        for _ in 0..<10 {
            let lease = try fixture.store.lease(id)
            try lease.setLength(300)
            fixture.plan.fail(.commit, with: .noSpace)
            lease.release()
            fixture.plan.fail(.commit, with: nil)
            #expect(fixture.store.usage(of: "alice").reservedBytes == 3)
        }
        try fixture.store.cancel(id, principal: "alice")
        #expect(fixture.store.usage(of: "alice") == Usage())
    }

    @Test("a sweep ends when the store is closed, and does not report the remaining uploads as failures")
    func closingSweep() throws {
        let catalog = CatalogDouble()
        let plan = FaultPlan()
        let store = try UploadStore(
            catalog: catalog, area: MemoryBlobArea(plan: plan), configuration: StoreConfiguration(minFree: 0))
        plan.fail(.rename, with: .crossDevice)
        for number in 0..<3 {
            let lease = try store.create(.testing())
            try lease.append("abc")
            #expect(throws: StoreError.self) { try lease.publish(.testing(name("x\(number)"))) }
            lease.release()
        }
        let removals = Counter()
        catalog.afterRemoval = { removals.next() }
        catalog.afterProcessing = { _ = store.registry.close() }
        #expect(store.sweep().failures == [])
        // No other step of the sweep begins, which the end of the store would have to wait for.
        #expect(removals.value == 0)
        store.close()
    }

    @Test("the totals that a stop during a creation saves do not include the new upload")
    func closingCreation() throws {
        for isTransient in [false, true] {
            let catalog = CatalogDouble()
            let plan = FaultPlan()
            let store = try UploadStore(
                catalog: catalog, area: MemoryBlobArea(plan: plan), configuration: StoreConfiguration(minFree: 0))
            plan.run(before: .read) { store.close() }
            #expect(throws: StoreError.superseded) {
                if isTransient {
                    _ = try store.createTransient(principal: "alice", length: 5)
                } else {
                    _ = try store.create(.testing(length: 5))
                }
            }
            #expect(catalog.closingTotals?.usage["alice"] == nil)
            #expect(store.usage(of: "alice") == Usage())
        }
    }

    @Test("no bytes are lost if the row of their upload could not be written")
    func failedCommit() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing())
        try lease.append("abc")
        for operation in [FaultPlan.Operation.commit, .committed] {
            fixture.plan.fail(operation, with: .inputOutput)
            #expect(throws: StoreError.self) { try lease.acknowledge() }
            #expect(lease.acknowledged == 0 && lease.isCurrent)
            fixture.plan.fail(operation, with: nil)
        }
        #expect(try lease.acknowledge() == 3)
    }

    @Test("SEC-17: on a full disk the bytes that were stored are counted, and the offset stays correct")
    func fullDisk() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        fixture.area.setCapacity(10)
        #expect(throws: StoreError.insufficientSpace(nil)) { try lease.append([UInt8](repeating: 1, count: 25)) }
        #expect(lease.received == 10)
        #expect(try lease.acknowledge() == 10)
        fixture.area.setCapacity(1000)
        try lease.append([UInt8](repeating: 2, count: 5))
        lease.release()
        #expect(try fixture.store.record(id).offset == 15)
    }

    @Test("no upload is created below the minimum of free space", arguments: StoreKind.allCases)
    func minOfFreeSpace(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) { $0.minFree = .max / 2 }
        func expectRefusal(_ begin: () throws -> UploadLease) {
            let error = #expect(throws: StoreError.self) { try begin() }
            guard case .insufficientSpace(let shortage?)? = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(shortage.kept == .max / 2 && shortage.free < shortage.kept)
        }
        expectRefusal { try fixture.store.create(.testing()) }
        expectRefusal { try fixture.store.createTransient(principal: "alice", length: nil) }
        #expect(fixture.store.usage(of: "alice") == Usage())
        #expect(try fixture.blobCount() == 0)
    }

    @Test("a failed creation leaves no bytes and no row", arguments: [FaultPlan.Operation.create, .commit, .committed])
    func failedCreation(_ operation: FaultPlan.Operation) throws {
        let fixture = try StoreFixture(.memory)
        fixture.plan.fail(operation, with: .inputOutput)
        #expect(throws: StoreError.self) { try fixture.store.create(.testing(length: 5)) }
        fixture.plan.fail(operation, with: nil)
        #expect(fixture.store.usage(of: "alice") == Usage())
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.store.sweep() == SweepReport())
    }

    @Test("missing acknowledged bytes invalidate the upload, and its offset never decreases")
    func lostBytes() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing(length: 6))
        let id = try #require(lease.id)
        try lease.append("abcdef")
        lease.release()
        let blob = try fixture.store.area.open(try #require(try fixture.store.catalog.row(id)).blob)
        try blob.truncate(to: 4)
        try blob.synchronize(including: .name)
        try fixture.reopen()
        #expect(throws: StoreError.gone(reason: "acknowledged bytes were lost")) {
            try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
        }
        #expect(fixture.store.usage(of: "alice") == Usage())
        #expect(try fixture.blobCount() == 0)
    }

    @Test("a store that cannot write is not ready")
    func health() throws {
        let fixture = try StoreFixture(.memory)
        fixture.plan.fail(.create, with: .readOnlyFileSystem)
        #expect(fixture.store.health() == Health(isReady: false, reasons: ["bytes-cannot-be-written"]))
    }

    @Test("a sweep removes bytes without an upload, but not the bytes of new uploads")
    func orphans() throws {
        let fixture = try StoreFixture(.memory)
        _ = try fixture.store.area.create("orphan")
        let lease = try fixture.store.create(.testing())
        let transient = try fixture.store.createTransient(principal: "alice", length: nil)
        #expect(fixture.store.sweep().orphans == 1)
        #expect(try fixture.blobCount() == 2)
        lease.release()
        transient.release()
        #expect(try fixture.blobCount() == 1)
    }
}
