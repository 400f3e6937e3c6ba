import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests one publication with every pair of failures, and with every pair of a failure and a crash, over the in-memory
/// implementation.
@Suite struct PublicationFaultTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        /// Whether the upload has an upload resource, and when it gets its row.
        enum Upload: String, CaseIterable {
            case plain, recordedLate, recordedAtOnce
        }

        var replaces: Bool
        var upload: Upload

        var isPlain: Bool { upload == .plain }

        var testDescription: String { "\(replaces ? "replacing" : "new"), \(upload)" }

        static let all = [false, true].flatMap { replaces in
            Upload.allCases.map { Kind(replaces: replaces, upload: $0) }
        }
    }

    private static let old = Array("old".utf8)
    private static let new = Array("new one".utf8)

    /// The parameters of a run, for the report of a failure.
    private struct Run: CustomStringConvertible {
        var kind: Kind
        var failures: [Int: Errno] = [:]
        var crashStep: Int?
        var seed: UInt64 = 0
        var steps: [FaultPlan.Operation] = []

        var description: String {
            "\(kind.testDescription), failures at \(failures.keys.sorted()), crash at \(crashStep ?? 0), seed \(seed), "
                + "steps \(steps)"
        }
    }

    /// Publishes the file that the tested publication replaces.
    private func publishOld(_ name: PublishedName, _ fixture: StoreFixture) throws {
        let lease = try fixture.store.create(.testing())
        try lease.append(Self.old)
        _ = try lease.publish(.testing(name))
        lease.release()
    }

    /// The number of steps of one publication, including the start of the store and two sweeps.
    private func steps(_ kind: Kind) throws -> Int {
        var run = Run(kind: kind)
        try perform(&run)
        return run.steps.count
    }

    @Test(
        "OFF-18: two failures of one publication never lose the old file or store a wrong answer", arguments: Kind.all)
    func pairs(_ kind: Kind) throws {
        let count = try steps(kind)
        for first in 1...count {
            for second in (first + 1)...(count + 12) {
                var run = Run(kind: kind, seed: UInt64(first * 100 + second))
                run.failures = [first: .inputOutput, second: .inputOutput]
                try perform(&run)
            }
        }
    }

    /// Why bytes are cut off from the file of an upload.
    enum Discard: CaseIterable {
        /// They failed a digest.
        case staged
        /// They failed a digest, and another request publishes the file.
        case stagedBefore
        /// They were not acknowledged before a crash.
        case unacknowledged
        /// They were not acknowledged before a crash, and a request before that of the publication has read the offset.
        case unacknowledgedBefore
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
            case .staged, .stagedBefore:
                try lease.beginStaging()
                try lease.append(Self.old)
                lease.discardStaged()
            case .unacknowledged, .unacknowledgedBefore:
                try lease.append(Self.old)
                plan.crash()
                lease.release()
                store.close()
                plan = FaultPlan()
                (catalog, area) = (catalog.durableImage(plan: plan), area.processImage(plan: plan))
                store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
                lease = try store.lease(id)
            }
            if [.stagedBefore, .unacknowledgedBefore].contains(discard) {
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
        "OFF-18: a failure and a crash at any later step never lose the old file or store a wrong answer",
        arguments: Kind.all)
    func crashes(_ kind: Kind) throws {
        let count = try steps(kind)
        for first in 1...count {
            for crash in (first + 1)...(count + 12) {
                var run = Run(kind: kind, seed: UInt64(first * 100 + crash))
                run.failures = [first: .inputOutput]
                run.crashStep = crash
                try perform(&run)
            }
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
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append(Self.new)
        _ = try lease.acknowledge()
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
        try lease.beginProcessing(marksDurably: false)
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

    @Test("OFF-18: the old file is kept until the answer of a publication is stored", arguments: [false, true])
    func unrecorded(_ failsPermanently: Bool) throws {
        let fixture = try StoreFixture(.memory)
        try publishOld(name("x"), fixture)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append(Self.new)
        _ = try lease.acknowledge()
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
            let lease = try fixture.store.create(.testing())
            let id = try #require(lease.id)
            try lease.append(Self.new)
            _ = try lease.acknowledge()
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
            let lease = try fixture.store.create(.testing())
            let id = try #require(lease.id)
            try lease.append(Self.new)
            _ = try lease.acknowledge()
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

    private func perform(_ run: inout Run) throws {
        var generator = SeededGenerator(seed: run.seed)
        var catalog = MemoryCatalog()
        var area = MemoryBlobArea()
        let target = try name("x")
        if run.kind.replaces {
            let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
            let lease = try store.create(.testing())
            try lease.append(Self.old)
            _ = try lease.publish(.testing(target))
            lease.release()
            store.close()
        }
        let plan = FaultPlan(crashStep: run.crashStep, failures: run.failures)
        catalog = catalog.durableImage(plan: plan)
        area = area.durableImage(using: &generator, plan: plan)
        var id: UploadID?
        var answer: Response?
        if let store = try? UploadStore(catalog: catalog, area: area, configuration: configuration) {
            let lease =
                run.kind.isPlain
                ? try? store.createTransient(principal: "alice", length: Int64(Self.new.count))
                : try? store.create(
                    .testing(length: Int64(Self.new.count)), recordsAtOnce: run.kind.upload == .recordedAtOnce)
            if let lease {
                id = lease.id
                if (try? lease.append(Self.new)) != nil { answer = try? lease.publish(.testing(target)) }
                lease.release()
            }
            _ = store.sweep()
            _ = store.sweep()
            run.steps = plan.history
            plan.crash()
            store.close()
        }
        // The first recovery crashes, too.
        for last in [false, true] {
            let plan = FaultPlan(crashStep: last ? nil : Int.random(in: 1...20, using: &generator))
            catalog = catalog.durableImage(plan: plan)
            area = area.durableImage(using: &generator, plan: plan)
            let store = try? UploadStore(catalog: catalog, area: area, configuration: configuration)
            if last { try verify(#require(store), area, id, answer, run) }
            plan.crash()
            store?.close()
        }
    }

    private var configuration: StoreConfiguration { StoreConfiguration(minFree: 0, processingWait: .zero) }

    private func verify(
        _ store: UploadStore, _ area: MemoryBlobArea, _ id: UploadID?, _ answer: Response?, _ run: Run
    ) throws {
        let content = area.publishedContents["x"]
        if content == nil {
            #expect(!run.kind.replaces && answer == nil, "the file is gone: \(run)")
        } else {
            #expect(content == Self.new || run.kind.replaces && content == Self.old, "\(run)")
        }
        if answer != nil { #expect(content == Self.new, "\(run)") }
        if let id {
            let phase = try? store.record(id).phase
            switch phase {
            case .complete(let stored):
                #expect([200, 201].contains(stored.status), "\(run)")
                #expect(content == Self.new, "\(run)")
            case .invalid:
                #expect(answer == nil && content != Self.new, "\(run)")
            case .processing: Issue.record("the upload is still being processed: \(run)")
            case .receiving, nil: #expect(answer == nil, "\(run)")
            }
        }
        #expect(store.sweep().failures.isEmpty, "\(run)")
        #expect(store.sweep() == SweepReport(), "\(run)")
        let expected = content.map { Int64($0.count) } ?? 0
        // An upload without a row and without an answer may have left a new file that is not counted.
        let mayBeUncounted = answer == nil && !run.kind.replaces && run.kind.upload == .recordedLate
        if !run.kind.isPlain {
            let published = store.usage(of: "alice").publishedBytes
            #expect(published == expected || mayBeUncounted && published == 0, "\(run)")
        }
    }
}
