import HTTPSemantics
import SystemCalls

// This file contains four subjects:
// - the acknowledgment of an upload: received bytes become durable, and then the offset in the row;
// - the acknowledgments of several uploads that one commit records;
// - the changes of the row, with their commit;
// - the events that report these changes.

// MARK: - Acknowledgment

extension OpenUpload {
    /// Waits until all received bytes and the length are durable, and returns the durable offset.
    func acknowledge(as lease: Int64) throws(StoreError) -> Int64 {
        var goal: Int64?
        while true {
            var recording: Recording?
            let step = try monitor.waitForever { (state) throws(StoreError) -> UploadMachine.AcknowledgmentStep? in
                let step = try state.machine.acknowledge(&goal, as: lease)
                if case .run(let advance) = step { recording = Recording(self, advance, state) }
                return step == .wait ? nil : step
            }
            if case .done(let offset) = step { return offset }
            if let recording { try run(recording, duringCallOf: lease) }
        }
    }

    /// One acknowledgment: the bytes to synchronize, and the change that then records them in the row. The value is
    /// created with the lock held, so that its digests cover no later bytes.
    struct Recording {
        let upload: OpenUpload
        let advance: UploadMachine.Advance
        let blob: any Blob
        let change: RowChange

        init?(_ upload: OpenUpload, _ advance: UploadMachine.Advance?, _ state: State) {
            guard let advance, let blob = state.blob else { return nil }
            self.upload = upload
            self.advance = advance
            self.blob = blob
            change = upload.rowChange(
                .advance(
                    CatalogChange.Advance(
                        id: upload.id, epoch: advance.epoch, offset: advance.offset, length: advance.length,
                        digestStates: state.digests.isEmpty ? [] : state.digests.encodedStates)), in: state)
        }
    }

    /// Lets another thread run the acknowledgment that ``UploadMachine/queueAcknowledgment(as:)`` has queued.
    /// - Parameters:
    ///   - use: kept until the acknowledgment ends, so that there is no second object for the same upload.
    ///   - queue: the threads that run it.
    func enqueueAcknowledgment(_ use: UploadUse?, on queue: WorkQueue) {
        let queuedAt = SystemClock.monotonicNanoseconds()
        let isQueued = queue.enqueue { [self] in
            Self.runQueuedAcknowledgments([self], queuedAt: queuedAt, context)
            withExtendedLifetime(use) {}
        }
        if !isQueued { update { $0.machine.withdrawQueuedAcknowledgment() } }
    }

    /// The time in nanoseconds after which an upload whose bytes are durable waits for no further synchronization of
    /// another upload.
    private static let maxWait: Int64 = 100_000_000

    /// Runs queued acknowledgments with one commit, or with more if the synchronizations are slow. The bytes of each
    /// upload are durable before the commit.
    /// - Parameter queuedAt: monotonic nanoseconds. If the storage has failed since then, so does the acknowledgment.
    static func runQueuedAcknowledgments(_ uploads: [OpenUpload], queuedAt: Int64, _ context: StoreContext) {
        var ready: [Recording] = []
        var deadline: Int64 = 0
        // Errors are not thrown here. A caller that waits for the offset gets the error of a synchronization, and repeats a
        // commit itself.
        for upload in uploads {
            if !ready.isEmpty, SystemClock.monotonicNanoseconds() >= deadline {
                _ = try? record(ready, context)
                ready = []
            }
            let recording = upload.monitor.withLock { state in
                Recording(upload, state.machine.runQueuedAcknowledgment(), state)
            }
            guard let recording else { continue }
            if let error = recording.blob.failure(since: queuedAt) {
                _ = upload.synchronizationFailed(error, duringCallOf: nil)
                continue
            }
            guard (try? upload.synchronize(recording, duringCallOf: nil)) != nil else { continue }
            if ready.isEmpty { deadline = SystemClock.monotonicNanoseconds() + maxWait }
            ready.append(recording)
        }
        if !ready.isEmpty { _ = try? record(ready, context) }
    }

    /// Records durable bytes with one commit, and then advances the durable offsets.
    /// - Throws: the error of one of the uploads, if possible one that concerns the operator.
    private static func record(_ recordings: [Recording], _ context: StoreContext) throws(StoreError) {
        try context.observing(.offset) { () throws(StoreError) in
            var failure: StoreError?
            for (recording, result) in zip(recordings, context.catalog.commit(recordings.map(\.change.combined))) {
                let upload = recording.upload
                let end = Result { () throws(StoreError) in try upload.evaluate(result, of: recording.change) }
                upload.update { state in
                    switch end {
                    case .success: state.machine.acknowledged(recording.advance)
                    case .failure: state.machine.acknowledgmentFailed()
                    }
                }
                if case .failure(let error) = end, failure == nil || error.isForOperator { failure = error }
            }
            if let failure { throw failure }
        }
    }

    /// Synchronizes the bytes, commits the row, and then advances the durable offset.
    func run(_ recording: Recording, duringCallOf failingLease: Int64?) throws(StoreError) {
        try synchronize(recording, duringCallOf: failingLease)
        if isTransient {
            update { $0.machine.acknowledged(recording.advance) }
        } else {
            try Self.record([recording], context)
        }
    }

    private func synchronize(_ recording: Recording, duringCallOf failingLease: Int64?) throws(StoreError) {
        guard recording.advance.hasNewBytes else { return }
        try synchronize(recording.blob, including: isTransient ? nil : .name, duringCallOf: failingLease)
    }

    /// - Parameter failingLease: the lease whose method throws the error: its holder needs no other notification that
    ///   the lease has ended. Nil if there is no such lease.
    func synchronize(
        _ blob: any Blob, including detail: BlobDetail?, duringCallOf failingLease: Int64?
    ) throws(StoreError) {
        guard context.shouldSynchronize else { return }
        do throws(Errno) {
            try context.observing(.content) { () throws(Errno) in try blob.synchronize(including: detail) }
        } catch {
            throw synchronizationFailed(error, duringCallOf: failingLease)
        }
    }

    /// Ends the lease after the bytes could not be synchronized.
    func synchronizationFailed(_ error: Errno, duringCallOf failingLease: Int64?) -> StoreError {
        let failure = StoreError.failure(error, during: "synchronize the content of an upload")
        update {
            $0.machine.synchronizationFailed(
                failure, duringCallOf: failingLease, isAwaited: context.catalog.isShared)
        }
        return failure
    }

    /// Creates the row of an upload that is recorded late, with all received bytes, unless a publication is about to
    /// create it.
    func recordNow() throws(StoreError) {
        if isTransient { return }
        let recording = monitor.waitForever { state -> Recording?? in
            // nil: wait; .some(nil): there is nothing to record.
            if state.machine.acknowledgment == .running { return nil }
            return .some(Recording(self, state.machine.beginRecording(), state))
        }
        if let recording { try run(recording, duringCallOf: nil) }
    }

    /// The upload as clients may see it: an offset is reported only after there is a row.
    /// - Returns: nil if the state in memory may not be current.
    func reportableRecord(shouldConfirmHold: Bool) throws(StoreError) -> UploadRecord? {
        if !isTransient && !machine.isRecorded { try recordNow() }
        let state = snapshot
        guard isHeld(state.machine), let current = record(state) else { return nil }
        if shouldConfirmHold, dependsOnHold(state.machine), try !confirmHold(state.machine.fence) { return nil }
        return current
    }
}

// MARK: - Acknowledgments of several uploads

/// The acknowledgments of small pieces of slow uploads. They wait for others for a short time, so that one commit records
/// many of them. A caller that needs one immediately runs it itself.
final class GatheredAcknowledgments: Sendable {
    /// An acknowledgment of this number of new bytes, or of more, does not wait.
    static let maxSize: Int64 = 64 << 10
    /// The time in nanoseconds for which the first acknowledgment waits.
    private static let pause: Int64 = 50_000_000
    /// The number of threads among which the acknowledgments are divided if their bytes have to be synchronized.
    private static let parts = 4
    /// The maximum number of these acknowledgments for each commit. A request for one of the uploads may have to wait
    /// until the bytes of all of them are synchronized.
    private static let maxCount = 16

    private typealias Waiting = (upload: OpenUpload, use: UploadUse?)

    private struct State {
        var waiting: [Waiting] = []
        var isClosed = false
    }

    private let state = Monitor(State())
    private let context: StoreContext
    private let queue: WorkQueue

    init(_ context: StoreContext) throws(Errno) {
        self.context = context
        queue = try WorkQueue(name: "gather", threads: 1)
    }

    /// Adds the acknowledgment of an upload. Once this is closed, the acknowledgment does not wait for others.
    func add(_ upload: OpenUpload, _ use: UploadUse?) {
        let count = state.withLock { state in
            if !state.isClosed { state.waiting.append((upload, use)) }
            return state.isClosed ? 0 : state.waiting.count
        }
        switch count {
        case 0: upload.enqueueAcknowledgment(use, on: context.acknowledging)
        case 1: queue.enqueue { [self] in passOn() }
        default: break
        }
    }

    private func passOn() {
        let queuedAt = SystemClock.monotonicNanoseconds()
        let deadline = queuedAt + Self.pause
        _ = state.wait(until: deadline) { $0.isClosed ? () : nil }
        let all = removeWaiting()
        guard !all.isEmpty else { return }
        let share = (all.count + Self.parts - 1) / Self.parts
        let count = context.shouldSynchronize ? min(Self.maxCount, share) : all.count
        for start in stride(from: 0, to: all.count, by: count) {
            let part = all[start..<min(start + count, all.count)]
            context.acknowledging.enqueue { [context] in
                OpenUpload.runQueuedAcknowledgments(part.map(\.upload), queuedAt: queuedAt, context)
                withExtendedLifetime(part) {}
            }
        }
    }

    private func removeWaiting() -> [Waiting] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Passes on the acknowledgments that wait, and accepts no more.
    func close() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
        queue.close()
        for (upload, use) in removeWaiting() { upload.enqueueAcknowledgment(use, on: context.acknowledging) }
    }
}

// MARK: - Changes of the row

/// A change of the row of an upload. If there is no row yet, the commit creates it together with the change.
struct RowChange: Sendable {
    let change: CatalogChange
    /// The name that the bytes get together with the change.
    let naming: CatalogChange.Naming?
    /// The first row of the upload, which contains the change; nil if the upload has a row, or needs none.
    let row: CatalogRow?
    /// The change to commit, together with `row`, `naming` and the events that report it.
    let combined: CatalogChange
}

extension OpenUpload {
    /// - Parameters:
    ///   - naming: the name that the bytes get together with the change.
    ///   - response: the final response, if the change does not contain it.
    ///   - state: the state for which the change is made. No other change of the row may be in progress.
    func rowChange(
        _ change: CatalogChange, _ naming: CatalogChange.Naming? = nil, response: Response? = nil, in state: State
    ) -> RowChange {
        let row = firstRow(with: change, in: state)
        var file: FileRecord?
        if case .complete(let completion) = change { file = completion.file }
        let reported = reporting(row.map { .insert($0, file: file) } ?? change, response, in: state)
        return RowChange(
            change: change, naming: naming, row: row, combined: naming.map { .naming(reported, $0) } ?? reported)
    }

    /// The first row of the upload, with this change; nil if there is a row. A plain upload gets a row only when it is
    /// decided that it replaces a file.
    private func firstRow(with change: CatalogChange, in state: State) -> CatalogRow? {
        let machine = state.machine
        let isDecision = if case .recordIntent = change { true } else { false }
        guard !machine.isRecorded, isDecision || !isTransient, var row = state.row else { return nil }
        row.length = machine.length
        // A publication is decided after all received bytes were synchronized.
        if isDecision { row = row.advanced(to: machine.received) }
        row.apply(change)
        return row
    }

    /// Commits a change of the row. If the commit fails, but the change was made, the failure is ignored.
    func commit(_ change: CatalogChange) throws(StoreError) {
        let change = rowChange(change, in: snapshot)
        _ = try evaluate(context.catalog.commit([change.combined])[0], of: change)
    }

    /// Evaluates the result of the commit of a change.
    /// - Returns: what the change removed or replaced; nil if the commit failed, but the change was made.
    func evaluate(
        _ result: Result<RemovedRows, StoreError>, of change: RowChange
    ) throws(StoreError) -> RemovedRows? {
        do throws(StoreError) {
            let removed = try result.get()
            if let row = change.row { noteRow(row) }
            return removed
        } catch {
            guard let row = change.row else {
                guard try isMade(change) else { throw error }
                return nil
            }
            update { $0.machine.recordingFailed() }
            try context.catalog.awaitOutcomes()
            guard let existing = try context.catalog.row(id) else { throw error }
            // The row was created by this commit, or by an earlier commit that seemed to have failed.
            noteRow(existing)
            if existing == row { return nil }
            let change = rowChange(change.change, change.naming, in: snapshot)
            return try evaluate(context.catalog.commit([change.combined])[0], of: change)
        }
    }

    /// Whether a change was made although its commit failed. The commit of an offset is not examined: it can be repeated.
    private func isMade(_ change: RowChange) throws(StoreError) -> Bool {
        if case .advance = change.change { return false }
        try context.catalog.awaitOutcomes()
        guard case .recordFile(let file, ending: nil) = change.change else {
            return change.change.isMade(in: try context.catalog.row(id))
        }
        guard case .file(let name, _, _, _)? = change.naming, let current = try? context.lookUp(name) else {
            return false
        }
        return file.describes(current)
    }

    private func noteRow(_ row: CatalogRow) {
        update { $0.machine.record(offset: row.offset) }
        // The name of the bytes of a plain upload stays in `newBlobs`, because its row ends with its lease.
        if !isTransient { context.newBlobs.remove(row.blob) }
    }
}

// MARK: - Events

extension OpenUpload {
    /// Returns a change of this upload together with the events that report it. The creation of a plain upload is not
    /// reported.
    private func reporting(_ change: CatalogChange, _ response: Response?, in state: State) -> CatalogChange {
        context.reporting(change) { time in
            guard let row = state.row else { return [] }
            let length = state.machine.length
            switch change {
            case .insert(let first, let file):
                let length = length ?? (first.isUnfinished ? nil : first.offset)
                return [
                    isTransient ? nil : UploadEvent(.created, of: row, at: time, length: length),
                    UploadEvent(endOf: row, as: first.phase, at: time, length: length, file: file),
                ]
            case .complete(let completion):
                return [
                    UploadEvent(
                        endOf: row, as: .complete(completion.response), at: time, length: length ?? completion.offset,
                        file: completion.file)
                ]
            case .invalidate(let invalidation):
                return [UploadEvent(endOf: row, as: .invalid(reason: invalidation.reason), at: time, length: length)]
            case .recordFile(let file, _):
                return [
                    response.flatMap {
                        UploadEvent(endOf: row, as: .complete($0), at: time, length: file.size, file: file)
                    }
                ]
            default: return []
            }
        }
    }
}

extension StoreContext {
    /// Returns a change together with the events that report it, if events are recorded.
    /// - Parameter events: returns the events for the current time.
    func reporting(_ change: CatalogChange, _ events: (_ time: Int64) -> [UploadEvent?]) -> CatalogChange {
        guard configuration.shouldRecordEvents else { return change }
        let events = events(timeOfEvents).compactMap { $0 }
        return events.isEmpty ? change : .reporting(change, events)
    }

    /// The change of the catalog that removes a row, with the event that reports it.
    func rowRemoval(for removal: OpenUpload.Removal) -> CatalogChange.Removal {
        let kind = configuration.shouldRecordEvents ? removal.kind : nil
        return CatalogChange.Removal(
            id: removal.row.id, epoch: removal.epoch,
            event: kind.map { UploadEvent($0, of: removal.row, at: timeOfEvents) })
    }

    /// The current time in milliseconds since 1970. Servers that share a catalog have the same clock.
    private var timeOfEvents: Int64 { configuration.clock().wall / 1_000_000 }
}
