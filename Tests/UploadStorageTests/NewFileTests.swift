import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Uploads without a row that are published at the same time share synchronizations and a commit.
@Suite(.timeLimit(.minutes(5))) struct NewFileTests {
    /// Uploads whose publications wait for the end of another one, and are then made together.
    private struct Group {
        static let count = 3

        let plan = FaultPlan()
        let catalog: MemoryCatalog
        let area: MemoryBlobArea
        let store: UploadStore
        private(set) var leases: [UploadLease] = []
        /// The response of each upload, or its error. The first is that of the upload for which the others wait.
        let outcomes = Monitor<[Int: Result<Response, StoreError>]>([:])

        static let configuration = StoreConfiguration(minFree: 0, processingWait: .zero)

        static func content(_ number: Int) -> String { String(repeating: "\(number)", count: 600 + number) }

        static func fileName(_ number: Int) -> String { number == 2 ? "d/x2" : "x\(number)" }

        private let names: [PublishedName]

        init(isPlain: Bool = false) throws {
            names = try (0...Self.count).map { try name(Self.fileName($0)) }
            (catalog, area) = (MemoryCatalog(plan: plan), MemoryBlobArea(plan: plan))
            store = try UploadStore(catalog: catalog, area: area, configuration: Self.configuration)
            for number in 0...Self.count {
                let content = Self.content(number)
                let length = Int64(content.utf8.count)
                let lease =
                    try isPlain
                    ? store.createTransient(principal: "alice", length: length)
                    : store.create(.testing(length: length), shouldRecordAtOnce: false)
                try lease.append(content)
                leases.append(lease)
            }
        }

        /// Publishes all uploads. Runs `body` once the publications wait.
        func publish(whenWaiting body: @escaping @Sendable () -> Void) throws {
            let queue = store.context.newFiles
            plan.run(before: .synchronize) {
                while queue.counts.waiting < Self.count { sched_yield() }
                body()
            }
            var threads: [WorkerThread] = []
            for (number, lease) in leases.enumerated() {
                threads.append(
                    try WorkerThread(name: "publish") { [outcomes, names] in
                        let outcome = Result { () throws(StoreError) in try lease.publish(.testing(names[number])) }
                        outcomes.withLock { $0[number] = outcome }
                    })
                // The first upload is the one for which the others wait.
                while number == 0, queue.counts.begun == 0 { sched_yield() }
            }
            for thread in threads { thread.join() }
        }

        func response(_ number: Int) -> Response? { outcomes.withLock { try? $0[number]?.get() } }

        func error(_ number: Int) -> StoreError? {
            outcomes.withLock { if case .failure(let error) = $0[number] { error } else { nil } }
        }

        func close() {
            for lease in leases { lease.release() }
            store.close()
        }
    }

    @Test("uploads that are published together share one synchronization of contents", arguments: [false, true])
    func shared(_ isPlain: Bool) throws {
        let group = try Group(isPlain: isPlain)
        let before = group.plan.history.count
        try group.publish {}
        let steps = group.plan.history[before...]
        #expect(steps.count { $0 == .synchronize } == 2)
        for number in 0...Group.count {
            #expect(group.response(number)?.status == 201)
            #expect(group.area.publishedContents[Group.fileName(number)] == Array(Group.content(number).utf8))
        }
        #expect(group.store.sweep() == SweepReport())
        #expect(group.store.usage(of: "alice").publishedBytes == Int64((0...3).reduce(0) { $0 + 600 + $1 }))
        group.close()
    }

    @Test("if a common synchronization becomes slow, the uploads that wait for it are published one by one")
    func alone() throws {
        let group = try Group()
        let before = group.plan.history.count
        try group.publish { [area = group.area] in area.setCanSynchronizeTogether(false) }
        #expect(group.plan.history[before...].count { $0 == .synchronize } == 1 + Group.count)
        for number in 0...Group.count {
            #expect(group.response(number)?.status == 201)
            #expect(group.area.publishedContents[Group.fileName(number)] == Array(Group.content(number).utf8))
        }
        group.close()
    }

    @Test(
        "OFF-18: after a power loss between any two steps of a common publication each file is complete or absent, and nothing is lost that was reported",
        arguments: [false, true], 0..<40)
    func powerLoss(_ isPlain: Bool, _ step: Int) throws {
        for seed in 1...4 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let group = try Group(isPlain: isPlain)
            try group.publish { [plan = group.plan] in plan.crash(inSteps: step) }
            group.plan.crash()
            group.close()
            let plan = FaultPlan()
            let (catalog, area) = (
                group.catalog.durableImage(plan: plan), group.area.durableImage(using: &generator, plan: plan)
            )
            let store = try UploadStore(catalog: catalog, area: area, configuration: Group.configuration)
            for number in 0...Group.count {
                let details = Comment(rawValue: "upload \(number), seed \(seed)")
                let content = area.publishedContents[Group.fileName(number)]
                #expect(content == nil || content == Array(Group.content(number).utf8), details)
                if let response = group.response(number) {
                    #expect(content != nil, details)
                    if let id = group.leases[number].id {
                        #expect(try store.record(id).phase == .complete(response), details)
                    }
                }
            }
            _ = store.sweep()
            #expect(store.sweep() == SweepReport())
            #expect(try area.sizes().isEmpty)
            store.close()
        }
    }

    @Test(
        "OFF-18: a failure of a common step fails every upload that it concerns, and leaves nothing",
        arguments: [FaultPlan.Operation.synchronize, .synchronizeNames, .commit], [false, true])
    func failure(_ operation: FaultPlan.Operation, _ isPlain: Bool) throws {
        let group = try Group(isPlain: isPlain)
        // Errors begin after the file of the first upload has its name.
        try group.publish { [plan = group.plan] in
            plan.fail([operation], after: operation == .synchronize ? .rename : .synchronizeNames, with: .inputOutput)
        }
        group.plan.fail(operation, with: nil)
        // The file of a plain upload without a record is published, and only missing in the usage.
        let isPublished = isPlain && operation == .commit
        for number in 1...Group.count {
            #expect((group.error(number) == nil) == isPublished)
            #expect((group.area.publishedContents[Group.fileName(number)] == nil) != isPublished)
            group.leases[number].release()
            if let id = group.leases[number].id {
                #expect(throws: StoreError.notFound) { try group.store.record(id) }
            }
        }
        group.leases[0].release()
        _ = group.store.sweep()
        #expect(try group.area.sizes().isEmpty)
        let later = try group.store.create(.testing(length: 1), shouldRecordAtOnce: false)
        try later.append("l")
        #expect(try later.publish(.testing(name("later"))).status == 201)
        later.release()
        group.close()
    }

    @Test(
        "OFF-18: a failed synchronization also fails uploads whose bytes it may have lost, and that are published later",
        arguments: [1, 2])
    func failureBefore(_ later: Int) throws {
        let group = try Group()
        let others = try (0..<later).map { number in
            let lease = try group.store.create(.testing(length: 5), shouldRecordAtOnce: false)
            try lease.append("later")
            return (name: try name("later\(number)"), lease: lease)
        }
        try group.publish { [plan = group.plan] in plan.fail([.synchronize], after: .rename, with: .inputOutput) }
        group.plan.fail(.synchronize, with: nil)
        let files = try others.map { other in
            NewFile(
                area: group.area, blob: try #require(other.lease.upload.monitor.withLock { $0.blob }), blobName: "",
                name: other.name,
                size: 5
            ) { _ throws(StoreError) in
                throw .superseded
            }
        }
        for outcome in group.store.context.publishTogether(files) {
            guard case .unsynchronized(.inputOutput) = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
        for other in others { other.lease.release() }
        group.close()
    }

    @Test("a commit that fails for one of the uploads withdraws only its file")
    func failureOfOne() throws {
        let group = try Group()
        try group.publish { [plan = group.plan] in plan.fail(occurrence: 3, of: .commit, with: .inputOutput) }
        let failed = (1...Group.count).filter { group.error($0) != nil }
        #expect(failed.count == 1)
        for number in 1...Group.count {
            #expect((group.area.publishedContents[Group.fileName(number)] == nil) == failed.contains(number))
        }
        group.close()
    }

    @Test("an upload whose name another program has just used does not fail the others")
    func occupied() throws {
        let group = try Group()
        let name = try name("x1")
        try group.publish { [area = group.area] in
            _ = try? area.create("stranger")
            _ = try? area.publish("stranger", as: name, replaces: false)
        }
        #expect((0...Group.count).allSatisfy { [200, 201].contains(group.response($0)?.status) })
        #expect(group.response(1)?.status == 200)
        #expect(group.area.publishedContents["x1"] == Array(Group.content(1).utf8))
        group.close()
    }
}
