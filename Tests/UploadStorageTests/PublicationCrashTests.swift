import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests one publication with every pair of failures, and with every pair of a failure and a crash, over the in-memory
/// implementation.
@Suite struct PublicationCrashTests {
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
                    .testing(length: Int64(Self.new.count)), shouldRecordAtOnce: run.kind.upload == .recordedAtOnce)
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
