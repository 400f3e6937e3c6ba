import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// The end of an upload that has no row yet: a crash, a failure, or the stop of the store.
@Suite(.timeLimit(.minutes(5))) struct LateRowEndTests {
    private static let content = "content"

    @Test(
        "after a crash an upload without a row of which nothing was reported does not exist", arguments: [false, true])
    func crash(_ isProcessing: Bool) throws {
        let (store, id) = try storeAfterCrash { _, lease in
            if isProcessing { try lease.beginProcessing(shouldMarkDurably: false) }
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
        let (store, id) = try storeAfterCrash { store, lease in
            let id = try #require(lease.id)
            if isProcessing {
                try lease.beginProcessing(shouldMarkDurably: false)
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
        let (lease, id) = try fixture.createLate()
        try fixture.store.cancel(id, principal: "alice")
        #expect(!lease.isCurrent)
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
        lease.release()
        try fixture.expectNothing()
    }

    @Test(
        "the sweep does not remove the bytes of an upload in use that has no row, and removes the upload when it has expired and is not in use"
    )
    func sweep() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(
            .testing(length: 7, expiresAt: fixture.store.time + 10), shouldRecordAtOnce: false)
        try lease.append("con")
        #expect(fixture.store.sweep() == SweepReport())
        #expect(try fixture.blobCount() == 1)
        fixture.advance(20)
        #expect(fixture.store.sweep() == SweepReport())
        lease.release()
        #expect(fixture.store.sweep().expired == 1)
        try fixture.expectNothing()
    }

    @Test("an upload without a row whose bytes could not be synchronized does not exist any more")
    func failedSynchronization() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate("con")
        fixture.plan.fail(.synchronize, with: .inputOutput)
        #expect(throws: StoreError.io(.inputOutput, during: "synchronize the content of an upload")) {
            try lease.acknowledge()
        }
        fixture.plan.fail(.synchronize, with: nil)
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
        #expect(lease.reportableOffset == nil)
        lease.release()
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
        try fixture.expectNothing()
    }

    @Test(
        "if the publication of an upload without a row fails, it is withdrawn, and the upload does not exist any more",
        arguments: [
            [.synchronize], [.synchronizeNames], [.commit], [.synchronize, .commit], [.synchronizeNames, .commit],
        ] as [[FaultPlan.Operation]])
    func failedPublication(_ operations: [FaultPlan.Operation]) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate()
        fixture.plan.fail(operations, after: .setTime, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        #expect(!lease.isCurrent && lease.reportableOffset == nil)
        for operation in operations { fixture.plan.fail(operation, with: nil) }
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
        lease.release()
        #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(name("x")) }
        try fixture.expectNothing()
        try fixture.reopen()
        #expect(throws: StoreError.notFound) { try fixture.store.lease(id) }
    }

    @Test("an upload without a row whose file cannot get its name is kept, and can be published later")
    func failedRename() throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate()
        fixture.plan.fail(.rename, with: .readOnlyFileSystem)
        #expect(throws: StoreError.io(.readOnlyFileSystem, during: "rename")) { try lease.publish(.testing(name("x"))) }
        #expect(lease.isCurrent)
        lease.endProcessing()
        #expect(try lease.acknowledge() == 7)
        lease.release()
        fixture.plan.fail(.rename, with: nil)
        try fixture.reopen()
        #expect(try fixture.store.lease(id).publish(.testing(name("x"))).status == 201)
        try fixture.expectNothing(published: 7)
    }

    @Test("the row has a length that was set after the creation")
    func laterLength() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing(), shouldRecordAtOnce: false)
        try lease.append(Self.content)
        try lease.setLength(7)
        _ = try lease.publish(.testing(name("x")))
        try fixture.reopen()
        let id = try #require(lease.id)
        #expect(try fixture.store.record(id).length == 7)
    }

    @Test("OFF-10: the record of an upload without a row is reported only after the row is durable")
    func recordOfOthers() throws {
        let (store, id) = try storeAfterCrash { store, lease in
            let id = try #require(lease.id)
            #expect(try store.record(id).offset == 3)
        }
        #expect(try store.record(id).offset == 3)
        store.close()
    }

    @Test("a commit that was reported as failed, but was made, is detected", arguments: [false, true])
    func failedAfterCommit(_ publishes: Bool) throws {
        let fixture = try StoreFixture(.memory)
        let (lease, id) = try fixture.createLate()
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

    /// Fails each step of an upload without a row, which is created, acknowledged if `acknowledges` is true, and
    /// published.
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
            let lease = try? store.create(.testing(length: 7), shouldRecordAtOnce: false)
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
        let lease = try store.create(.testing(length: 7), shouldRecordAtOnce: false)
        let id = try #require(lease.id)
        try lease.append("content")
        if isProcessing { try lease.beginProcessing(shouldMarkDurably: false) }
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
        let (lease, id) = try fixture.createLate("con")
        let held = Monitor<UploadLease?>(lease)
        lease.onRevocation { held.withLock { $0.take() }?.release() }
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == 3)
        #expect(fixture.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 7))
    }

    @Test("a client that got only the URL finds its upload after a clean stop", arguments: StoreKind.allCases)
    func stopAndStart(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let (lease, id) = try fixture.createLate("con")
        try fixture.reopen()
        #expect(try fixture.store.lease(id).acknowledged == 3)
        lease.release()
    }

    @Test("a plain upload that is in use at a stop prevents the totals from being saved")
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
