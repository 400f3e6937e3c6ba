import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Failures of a publication, its withdrawal, and the recovery after them. ``PublicationCrashTests`` tests every pair of
/// failures.
@Suite struct PublicationFaultTests {
    private static let old = Array("old".utf8)
    private static let new = Array("new one".utf8)

    /// Publishes the file that the tested publication replaces.
    private func publishOld(_ name: PublishedName, _ fixture: StoreFixture) throws {
        let lease = try fixture.store.create(.testing())
        try lease.append(Self.old)
        _ = try lease.publish(.testing(name))
        lease.release()
    }

    /// Creates an upload whose bytes are durable.
    private func begin(_ fixture: StoreFixture) throws -> (lease: UploadLease, id: UploadID) {
        let lease = try fixture.store.create(.testing())
        try lease.append(Self.new)
        _ = try lease.acknowledge()
        return (lease, try #require(lease.id))
    }

    /// The reason why bytes are cut off from the file of an upload.
    enum Discard: CaseIterable {
        /// Staged bytes that did not match their digest.
        case staged
        /// Staged bytes of an earlier request that did not match their digest.
        case stagedByEarlierRequest
        /// The bytes were not acknowledged before a crash.
        case unacknowledged
        /// The bytes were not acknowledged before a crash, and a request before that of the publication has read the
        /// offset.
        case unacknowledgedBeforeEarlierRequest
    }

    @Test(
        "OFF-18: a power loss during a publication does not bring back bytes that were discarded before",
        arguments: Discard.allCases)
    func discarded(_ discard: Discard) throws {
        for seed in 1...200 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
            var plan = FaultPlan()
            var (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
            var store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
            var lease = try store.create(.testing())
            let id = try #require(lease.id)
            try lease.append(Self.new)
            _ = try lease.acknowledge()
            switch discard {
            case .staged, .stagedByEarlierRequest:
                try lease.beginStaging()
                try lease.append(Self.old)
                lease.discardStaged()
            case .unacknowledged, .unacknowledgedBeforeEarlierRequest:
                try lease.append(Self.old)
                plan.crash()
                lease.release()
                store.close()
                plan = FaultPlan()
                (catalog, area) = (catalog.durableImage(plan: plan), area.processImage(plan: plan))
                store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
                lease = try store.lease(id)
            }
            if [.stagedByEarlierRequest, .unacknowledgedBeforeEarlierRequest].contains(discard) {
                lease.release()
                lease = try store.lease(id)
            }
            let crashesEarly = Bool.random(using: &generator)
            plan.run(before: .rename) { [plan] in
                plan.run(before: crashesEarly ? .synchronize : .synchronizeNames) { plan.crash() }
            }
            _ = try? lease.publish(.testing(name("x")))
            plan.crash()
            lease.release()
            store.close()
            let next = FaultPlan()
            let nextArea = area.durableImage(using: &generator, plan: next)
            let reopened = try UploadStore(
                catalog: catalog.durableImage(plan: next), area: nextArea, configuration: configuration)
            _ = try? reopened.takeOver(id, principal: "alice", waitForProcessing: .zero)
            #expect([nil, Self.new].contains(nextArea.publishedContents["x"]), "seed \(seed)")
            reopened.close()
        }
    }

    @Test(
        "OFF-18: a failed publication stays failed, even if later steps fail too, and the old file is kept",
        arguments: [
            [.synchronizeNames, .commit], [.synchronizeNames, .rename], [.synchronizeNames, .rename, .commit],
            [.synchronize, .commit], [.synchronize, .rename], [.synchronize, .rename, .remove],
        ] as [[FaultPlan.Operation]], [false, true])
    func failingAgain(_ operations: [FaultPlan.Operation], _ replaces: Bool) throws {
        let fixture = try StoreFixture(.memory)
        if replaces {
            try publishOld(name("x"), fixture)
        }
        let (lease, id) = try begin(fixture)
        fixture.plan.fail(operations, after: .rename, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        // The upload is loaded again from its row.
        lease.release()
        #expect(!fixture.store.sweep().failures.isEmpty)
        for operation in operations { fixture.plan.fail(operation, with: nil) }
        _ = fixture.store.sweep()
        _ = fixture.store.sweep()
        func check() throws {
            if replaces {
                #expect(try fixture.store.publishedFile(name("x")).readAll() == Self.old)
            } else {
                #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(name("x")) }
            }
        }
        try check()
        try fixture.reopen()
        try check()
        #expect(throws: StoreError.gone(reason: "its file could not be made durable")) { try fixture.store.lease(id) }
        _ = fixture.store.sweep()
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.store.sweep() == SweepReport())
        #expect(fixture.store.usage(of: "alice") == Usage(publishedBytes: replaces ? 3 : 0))
    }

    /// The step after which a withdrawal was interrupted.
    enum Stage: CaseIterable {
        case recorded, renamed, synchronized
    }

    @Test(
        "OFF-18: an interrupted withdrawal is completed by the next start",
        arguments: StoreKind.embedded.flatMap { kind in [false, true].map { (kind, $0) } }, Stage.allCases)
    func interruptedWithdrawal(_ kind: (store: StoreKind, replaces: Bool), _ stage: Stage) throws {
        let fixture = try StoreFixture(kind.store)
        let target = try name("dir/x")
        if kind.replaces {
            try publishOld(target, fixture)
        }
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append(Self.new)
        try lease.beginProcessing(shouldMarkDurably: false)
        let (area, catalog) = (try #require(fixture.store.context.publishingArea), fixture.store.catalog)
        let row = try #require(try catalog.row(id))
        let intent = PublicationIntent(
            name: target,
            replaced: kind.replaces ? try fixture.store.publishedFile(target).attributes.entityTag.opaque : nil,
            identity: try area.open(row.blob).identity(), response: Response(status: 201),
            refused: Response(status: 409))
        try catalog.commit(.recordIntent(id, epoch: 1, intent))
        try area.makeDirectories(for: target, durably: true)
        _ = try area.publish(row.blob, as: target, replaces: kind.replaces)
        #expect(try catalog.row(id)?.isWithdrawn == false)
        try catalog.commit(.withdraw(id, epoch: 1))
        #expect(try catalog.row(id)?.isWithdrawn == true)
        if stage != .recorded {
            let epoch = try area.withdraw(target, to: row.blob)
            if stage == .synchronized { try area.synchronizeWithdrawal(target, since: epoch) }
        }
        try fixture.reopen()
        #expect(throws: StoreError.gone(reason: "its file could not be made durable")) { try fixture.store.lease(id) }
        if kind.replaces {
            #expect(try fixture.store.publishedFile(target).readAll() == Self.old)
        } else {
            #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(target) }
        }
        _ = fixture.store.sweep()
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.store.sweep() == SweepReport())
        #expect(fixture.store.usage(of: "alice") == Usage(publishedBytes: kind.replaces ? 3 : 0))
        lease.release()
    }

    @Test("OFF-18: the old file is kept until the final response of a publication is stored", arguments: [false, true])
    func unrecorded(_ failsPermanently: Bool) throws {
        let fixture = try StoreFixture(.memory)
        try publishOld(name("x"), fixture)
        let (lease, id) = try begin(fixture)
        fixture.plan.fail([.commit], after: .rename, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        fixture.plan.fail(.commit, with: nil)
        if failsPermanently { fixture.plan.fail(.synchronize, with: .inputOutput) }
        lease.release()
        _ = fixture.store.sweep()
        fixture.plan.fail(.synchronize, with: nil)
        _ = fixture.store.sweep()
        try fixture.reopen()
        let content = try fixture.store.publishedFile(name("x")).readAll()
        if failsPermanently {
            #expect(content == Self.old)
            #expect(throws: StoreError.gone(reason: "its file could not be made durable")) {
                try fixture.store.lease(id)
            }
        } else {
            #expect(content == Self.new)
        }
        // The power loss may have restored a removed name.
        _ = fixture.store.sweep()
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.store.sweep() == SweepReport())
    }

    @Test(
        "OFF-18: if a process ends before a failed synchronization is recorded, the next process synchronizes again",
        arguments: [FaultPlan.Operation.synchronize, .synchronizeNames], [false, true])
    func endedAfterFailure(_ operation: FaultPlan.Operation, _ replaces: Bool) throws {
        for seed in 0..<12 as Range<UInt64> {
            let fixture = try StoreFixture(.memory)
            if replaces {
                try publishOld(name("x"), fixture)
            }
            let (lease, id) = try begin(fixture)
            fixture.plan.fail([operation, .commit], after: .rename, with: .inputOutput)
            #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
            lease.release()
            for operation in [operation, .commit] { fixture.plan.fail(operation, with: nil) }
            try fixture.reopen(losingPower: false)
            #expect(try fixture.store.record(id).phase == .complete(Response(status: replaces ? 200 : 201)))
            let before = try fixture.store.publishedFile(name("x")).attributes
            try fixture.reopen(seed: seed)
            let file = try? fixture.store.publishedFile(name("x"))
            #expect(try file?.readAll() == Self.new, "seed \(seed)")
            #expect(file?.attributes.modifiedNanoseconds == before.modifiedNanoseconds, "seed \(seed)")
            _ = fixture.store.sweep()
            #expect(try fixture.blobCount() == 0)
        }
    }

    @Test("OFF-18: a withdrawal that one process failed to synchronize is repeated by the next process")
    func endedAfterFailedWithdrawal() throws {
        for seed in 0..<24 as Range<UInt64> {
            let fixture = try StoreFixture(.memory)
            try publishOld(name("x"), fixture)
            let (lease, id) = try begin(fixture)
            fixture.plan.fail([.synchronizeNames], after: .rename, with: .inputOutput)
            #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
            lease.release()
            fixture.plan.fail(.synchronizeNames, with: nil)
            try fixture.reopen(losingPower: false)
            _ = fixture.store.sweep()
            #expect(throws: StoreError.gone(reason: "its file could not be made durable")) {
                try fixture.store.lease(id)
            }
            try fixture.reopen(seed: seed)
            #expect(try fixture.store.publishedFile(name("x")).readAll() == Self.old, "seed \(seed)")
        }
    }

    @Test("a publication removes a leftover name only if it replaces a file", arguments: [false, true])
    func discarding(_ isPlain: Bool) throws {
        let fixture = try StoreFixture(.memory)
        for replaces in [false, true] {
            let lease =
                isPlain
                ? try fixture.store.createTransient(principal: "alice", length: nil)
                : try fixture.store.create(.testing())
            try lease.append(Self.new)
            let before = fixture.plan.steps
            _ = try lease.publish(.testing(name("x")))
            lease.release()
            #expect(fixture.plan.history.dropFirst(before).count { $0 == .remove } == (replaces ? 1 : 0))
            #expect(try fixture.blobCount() == 0)
        }
    }

    @Test(
        "OFF-18: a plain publication that could not be withdrawn is withdrawn later, after a restart only if recorded",
        arguments: [
            [.synchronizeNames, .rename], [.synchronizeNames, .rename, .commit], [.synchronize, .rename, .commit],
        ] as [[FaultPlan.Operation]], [false, true])
    func failedPlainWithdrawal(_ operations: [FaultPlan.Operation], _ restarts: Bool) throws {
        let fixture = try StoreFixture(.memory)
        try publishOld(name("x"), fixture)
        let lease = try fixture.store.createTransient(principal: "alice", length: nil)
        try lease.append(Self.new)
        fixture.plan.fail(operations, after: .rename, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        lease.release()
        for operation in operations { fixture.plan.fail(operation, with: nil) }
        if restarts { try fixture.reopen(losingPower: false) }
        #expect(fixture.store.sweep().orphans == 0)
        let recordFails = operations.contains(.commit)
        // Without a record of the failure the next start publishes the file again.
        #expect(
            try fixture.store.publishedFile(name("x")).readAll() == (restarts && recordFails ? Self.new : Self.old))
        #expect(try fixture.blobCount() == 0)
        try fixture.reopen()
        #expect(
            try fixture.store.publishedFile(name("x")).readAll() == (restarts && recordFails ? Self.new : Self.old))
        _ = fixture.store.sweep()
        #expect(fixture.store.sweep() == SweepReport())
        let bytes = Int64(restarts && recordFails ? Self.new.count : Self.old.count)
        #expect(fixture.store.usage(of: "alice") == Usage(publishedBytes: bytes))
    }
}
