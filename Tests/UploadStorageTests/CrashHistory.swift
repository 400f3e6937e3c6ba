import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport

@testable import UploadStorage

/// The actions of one client on a store that crashes, the results that were reported to it, and a check that none of
/// them was lost.
struct CrashHistory {
    enum Action: CaseIterable {
        case create, append, acknowledge, takeOver, release, publish, complete, cancel, stage, startAcknowledging
    }

    /// The state of one upload according to the responses that the client received.
    private struct ReportedState {
        var id: UploadID
        var content: [UInt8]
        /// The largest offset that was reported to the client.
        var reportedOffset: Int64 = 0
        var lease: UploadLease?
        var name: PublishedName
        /// The final response that the client has received; nil before that.
        var response: Response?
        var mayBeGone = false
        /// Whether it was reported to the client that the upload exists: by an offset, by a final response, or, for an
        /// upload that is recorded at once, by its creation.
        var isReported: Bool
    }

    private let seed: UInt64
    private var generator: SeededGenerator
    private let script: [Action]?
    private let crashStep: Int
    private let withFaults: Bool
    /// Uploads up to this length are recorded late; by default about half of them.
    private let lateLength: Int
    private var uploads: [ReportedState] = []
    private(set) var problems: [String] = []
    /// The steps of the store before the first crash, with the error of each failed step.
    private(set) var steps: [String] = []

    init(
        seed: UInt64, crashStep: Int? = nil, withFaults: Bool = false, script: [Action]? = nil,
        lateLength: Int = 2000
    ) {
        self.withFaults = withFaults
        self.lateLength = lateLength
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        self.script = script
        self.crashStep = crashStep ?? Int.random(in: 3...120, using: &generator)
    }

    mutating func run() throws {
        var failures: [Int: Errno] = [:]
        if withFaults {
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                failures[Int.random(in: 3...100, using: &generator)] =
                    Bool.random(using: &generator) ? .inputOutput : .noSpace
            }
        }
        let plan = FaultPlan(crashStep: crashStep, failures: failures)
        var catalog = MemoryCatalog(plan: plan)
        var area = MemoryBlobArea(plan: plan)
        do {
            let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
            for action in script ?? (0..<60).map({ _ in Action.allCases.randomElement(using: &generator) ?? .append }) {
                if plan.isCrashed { break }
                try? perform(action, on: store)
            }
            plan.crash()
            for index in uploads.indices {
                uploads[index].lease?.release()
                uploads[index].lease = nil
            }
            store.close()
        } catch {
            // The store crashed during its start.
        }
        steps = plan.history.enumerated().map { index, operation in
            failures[index + 1].map { "\(operation) (\($0))" } ?? "\(operation)"
        }
        // The recovery may crash, too, and more than once.
        for attempt in 0..<3 {
            let last = attempt == 2
            let plan = FaultPlan(crashStep: last ? nil : Int.random(in: 1...30, using: &generator))
            catalog = catalog.durableImage(plan: plan)
            area = area.durableImage(using: &generator, plan: plan)
            guard let store = try? UploadStore(catalog: catalog, area: area, configuration: configuration) else {
                if last { report("the store does not start") }
                continue
            }
            if last { try verify(store) { area.publishedContents } }
            plan.crash()
            store.close()
        }
    }

    /// Runs the history on a shared storage that loses power several times. After each time another node opens a store.
    mutating func run(on storage: SharedPowerLoss) throws {
        for life in 0..<4 {
            let isLast = life == 3
            let store = try storage.open(configuration)
            if isLast {
                try verify(store) { try storage.publishedContents(of: store) }
            } else {
                storage.losePower(inSteps: Int.random(in: 1...60, using: &generator))
                for _ in 0..<40 where !storage.isWithoutPower {
                    try? perform(Action.allCases.randomElement(using: &generator) ?? .append, on: store)
                }
                storage.losePower()
            }
            for index in uploads.indices {
                uploads[index].lease?.release()
                uploads[index].lease = nil
            }
            store.close()
            if !isLast { try storage.restorePower(using: &generator) }
        }
    }

    private var configuration: StoreConfiguration {
        StoreConfiguration(minFree: 0, processingWait: .zero)
    }

    private mutating func report(_ text: String) { problems.append(text) }

    // MARK: Actions

    private mutating func perform(_ action: Action, on store: UploadStore) throws {
        if action == .create || uploads.isEmpty { return try create(on: store) }
        let index = Int.random(in: uploads.indices, using: &generator)
        switch action {
        case .create: break
        case .append: try append(index, store)
        case .acknowledge: try recordReportedOffset(index, lease(index, store).acknowledge())
        case .startAcknowledging: try lease(index, store).startAcknowledging()
        case .takeOver:
            if case .lease(let lease) = try store.takeOver(
                uploads[index].id, principal: "alice", waitForProcessing: .zero)
            {
                uploads[index].lease?.release()
                uploads[index].lease = lease
            }
        case .release:
            uploads[index].lease?.release()
            uploads[index].lease = nil
        case .stage:
            try lease(index, store).beginStaging()
            try uploads[index].lease?.append([0, 0, 0])
            uploads[index].lease?.discardStaged()
        case .publish:
            try sendRest(index, store)
            uploads[index].response = try lease(index, store).publish(.testing(uploads[index].name))
            uploads[index].isReported = true
        case .complete:
            let response = Response(status: 400)
            try lease(index, store).complete(with: response)
            uploads[index].response = response
            uploads[index].isReported = true
        case .cancel:
            uploads[index].mayBeGone = true
            uploads[index].lease = nil
            try store.cancel(uploads[index].id, principal: "alice")
        }
    }

    private mutating func create(on store: UploadStore) throws {
        let size = Int.random(in: 0..<5, using: &generator) == 0 ? 0 : Int.random(in: 1...4000, using: &generator)
        let content = (0..<size).map { _ in UInt8.random(in: 1...255, using: &generator) }
        let names = [["a"], ["b"], ["dir", "a"], ["dir", "sub", "b"]]
        guard let name = PublishedName(segments: names.randomElement(using: &generator) ?? ["a"]) else { return }
        let shouldRecordAtOnce = size > lateLength
        let lease = try store.create(
            .testing(length: Int64(size), digests: [.sha256]), shouldRecordAtOnce: shouldRecordAtOnce)
        guard let id = lease.id else { return report("an upload without id") }
        uploads.append(
            ReportedState(id: id, content: content, lease: lease, name: name, isReported: shouldRecordAtOnce))
    }

    private mutating func lease(_ index: Int, _ store: UploadStore) throws -> UploadLease {
        if let lease = uploads[index].lease, lease.isCurrent { return lease }
        guard
            case .lease(let lease) = try store.takeOver(
                uploads[index].id, principal: "alice", waitForProcessing: .zero)
        else { throw StoreError.completed }
        uploads[index].lease = lease
        return lease
    }

    private mutating func append(_ index: Int, _ store: UploadStore) throws {
        let lease = try lease(index, store)
        let remaining = uploads[index].content[Int(lease.received)...]
        let piece = Array(remaining.prefix(Int.random(in: 0...1500, using: &generator)))
        try lease.append(piece)
    }

    private mutating func sendRest(_ index: Int, _ store: UploadStore) throws {
        let lease = try lease(index, store)
        try lease.append(Array(uploads[index].content[Int(lease.received)...]))
    }

    private mutating func recordReportedOffset(_ index: Int, _ offset: Int64) {
        uploads[index].reportedOffset = max(uploads[index].reportedOffset, offset)
        uploads[index].isReported = true
    }

    // MARK: Checks

    private mutating func verify(
        _ store: UploadStore, _ publishedContents: () throws -> [String: [UInt8]]
    ) throws {
        let contents = Set(uploads.map(\.content))
        for (path, bytes) in try publishedContents() where !contents.contains(bytes) {
            report("the file \(path) has the content of no upload")
        }
        for index in uploads.indices { try verify(index, store) }
        var expected = Usage()
        for row in try store.catalog.unfinishedRows() {
            expected.uploads += 1
            expected.reservedBytes += row.reservedBytes
        }
        expected.publishedBytes = try store.catalog.publishedBytes(of: "alice")
        let usage = store.currentUsage(of: "alice")?["alice"] ?? Usage()
        if usage != expected { report("usage is \(usage), not \(expected)") }
        // A crash between the publication of an upload without a row and its record leaves a file that is not counted.
        let unanswered = Set(uploads.filter { !$0.isReported && $0.response == nil }.map(\.content))
        let counted = try publishedContents().filter { path, bytes in
            try store.catalog.file(path) != nil || !unanswered.contains(bytes)
        }
        let onDisk = counted.values.reduce(0) { $0 + Int64($1.count) }
        if onDisk != expected.publishedBytes {
            report("the files have \(onDisk) bytes, but \(expected.publishedBytes) were counted")
        }
        let first = store.sweep()
        if !first.failures.isEmpty || first.expired > 0 { report("the first sweep found \(first)") }
        let sweep = store.sweep()
        if sweep != SweepReport() { report("the second sweep found \(sweep)") }
    }

    private mutating func verify(_ index: Int, _ store: UploadStore) throws {
        let known = uploads[index]
        let taken: TakeOver
        do {
            taken = try store.takeOver(known.id, principal: "alice", waitForProcessing: .zero)
        } catch {
            let mayBeGone =
                error == .notFound && (known.mayBeGone || !known.isReported)
                || error == .gone(reason: "its file could not be made durable") && known.response == nil && withFaults
            if !mayBeGone { report("upload \(index): \(error)") }
            return
        }
        switch taken {
        case .processing: report("upload \(index) is still being processed")
        case .complete(let record):
            guard case .complete(let response) = record.phase else { return report("complete, no response") }
            if let sent = known.response, sent != response { report("upload \(index) has another response") }
            if ![200, 201, 400].contains(response.status) {
                report("upload \(index) has the response \(response.status)")
            }
        case .lease(let lease):
            if known.response != nil { report("upload \(index) lost its stored response") }
            if lease.acknowledged < known.reportedOffset {
                report("upload \(index): \(lease.acknowledged) < \(known.reportedOffset)")
            }
            let received = Int(lease.received)
            if try lease.readAll() != Array(known.content.prefix(received)) { report("upload \(index): wrong bytes") }
            try lease.append(Array(known.content[received...]))
            if try lease.representationDigest(.sha256) != digest(known.content) {
                report("upload \(index): wrong digest")
            }
            let response = try lease.publish(.testing(known.name))
            if ![200, 201].contains(response.status) { report("upload \(index) cannot be published") }
            if try store.publishedFile(known.name).readAll() != known.content {
                report("upload \(index): wrong file")
            }
        }
    }
}
