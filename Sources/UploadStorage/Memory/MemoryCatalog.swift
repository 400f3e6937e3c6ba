import SystemCalls

/// The in-memory implementation of the catalog. Every committed change is durable.
package final class MemoryCatalog: UploadCatalog {
    private struct State {
        var rows: [UploadID: CatalogRow] = [:]
        var files: [String: FileRecord] = [:]
        var mark: LifetimeClock.Mark?
        /// The recorded events, in the order of their numbers.
        var events: [OutboxEntry] = []
        var lastEvent: Int64 = 0
        var statistics = CatalogStatistics()
        var isClosed = false

        mutating func record(_ event: UploadEvent) {
            lastEvent += 1
            events.append(OutboxEntry(number: lastEvent, event: event, state: .waiting))
            statistics.events += 1
        }
    }

    private let state: Monitor<State>
    private let plan: FaultPlan
    private let eventObserver = Monitor<(@Sendable () -> Void)?>(nil)

    package init(plan: FaultPlan = FaultPlan()) {
        self.plan = plan
        state = Monitor(State())
    }

    private init(_ state: sending State, plan: FaultPlan) {
        self.state = Monitor(state)
        self.plan = plan
    }

    /// Returns the catalog that the next process opens after a crash.
    package func durableImage(plan: FaultPlan = FaultPlan()) -> MemoryCatalog {
        let (rows, files, mark, events) = state.withLock { ($0.rows, $0.files, $0.mark, $0.events) }
        return MemoryCatalog(
            State(rows: rows, files: files, mark: mark, events: events, lastEvent: events.last?.number ?? 0), plan: plan
        )
    }

    package var statistics: CatalogStatistics { state.withLock { $0.statistics } }

    package func close(saving totals: CatalogTotals?) { state.withLock { $0.isClosed = true } }

    /// The totals of the current rows. A store reads them when it opens.
    package var savedTotals: CatalogTotals? {
        state.withLock { state in
            var totals = CatalogTotals()
            for row in state.rows.values {
                switch row.phase {
                case .complete: totals.complete += 1
                case .invalid: totals.invalid += 1
                case .receiving, .processing:
                    totals.usage[row.upload.principal, default: Usage()].uploads += 1
                    totals.usage[row.upload.principal, default: Usage()].reservedBytes += row.reservedBytes
                }
            }
            for file in state.files.values {
                totals.usage[file.principal, default: Usage()].publishedBytes += file.size
            }
            return totals
        }
    }

    package func countTotals() throws(StoreError) -> CatalogTotals { savedTotals ?? CatalogTotals() }

    package func stopCounting() {}

    package var isVerificationNeeded: Bool { false }

    package var damage: StoreError? { nil }

    package func verify() throws(StoreError) {}

    package func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>] {
        defer { if changes.contains(where: \.canRecordEvents) { eventObserver.withLock { $0 }?() } }
        return changes.map { change in Result { () throws(StoreError) in try commitOne(change) } }
    }

    package func onEvents(_ body: @escaping @Sendable () -> Void) { eventObserver.withLock { $0 = body } }

    private func commitOne(_ change: CatalogChange) throws(StoreError) -> RemovedRows {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            try translating("write the catalog") { () throws(Errno) in try plan.step(.commit) }
            state.statistics.changes += 1
            state.statistics.transactions += 1
            let removed = try Self.apply(change, to: &state)
            try translating("write the catalog") { () throws(Errno) in try plan.step(.committed) }
            return removed
        }
    }

    private static func apply(
        _ change: CatalogChange, to state: inout State
    ) throws(StoreError) -> RemovedRows {
        var removed = RemovedRows()
        switch change {
        case .insert(let row, let file):
            guard state.rows[row.id] == nil else {
                throw .invalidState("an upload with this identifier or blob exists")
            }
            state.rows[row.id] = row
            if let file { removed.file = state.files.updateValue(file, forKey: file.name) }
        case .advance(let advance): try update(advance.id, advance.epoch, change, in: &state) { $0.intent == nil }
        case .markProcessing(let id, let epoch): try update(id, epoch, change, in: &state) { $0.intent == nil }
        case .recordIntent(let id, let epoch, _): try update(id, epoch, change, in: &state)
        case .withdraw(let id, let epoch): try update(id, epoch, change, in: &state) { $0.intent != nil }
        case .complete(let completion):
            try update(completion.id, completion.epoch, change, in: &state)
            if let file = completion.file { removed.file = state.files.updateValue(file, forKey: file.name) }
        case .invalidate(let invalidation): try update(invalidation.id, invalidation.epoch, change, in: &state)
        case .delete(let removals):
            for removal in removals {
                guard let row = state.rows[removal.id], row.epoch <= removal.epoch else { continue }
                state.rows[removal.id] = nil
                removed.add(row.phase)
                if row.isUnfinished, let event = removal.event { state.record(event) }
            }
        case .removeFinished(let now, let limit):
            let expired = state.rows.values.filter { !$0.isUnfinished && $0.expiresAt.map { $0 <= now } ?? false }
            for row in expired.sorted(by: { ($0.expiresAt ?? 0) < ($1.expiresAt ?? 0) }).prefix(limit) {
                state.rows[row.id] = nil
                removed.add(row.phase)
            }
        case .recordFile(let file, let ending):
            removed.file = state.files.updateValue(file, forKey: file.name)
            if let ending, let row = state.rows[ending.id], row.epoch <= ending.epoch { state.rows[ending.id] = nil }
        case .removeFiles(let names): for name in names { state.files[name] = nil }
        case .recordTime(let mark): state.mark = mark
        case .limitExpiry(let time, let limit):
            for isUnfinished in [true, false] {
                let later = state.rows.values.filter { row in
                    row.isUnfinished == isUnfinished && row.expiresAt.map { $0 > time } ?? false
                }
                for row in later.prefix(limit) { state.rows[row.id]?.expiresAt = time }
            }
        case .probe: break
        case .reporting(let change, let events):
            removed = try apply(change, to: &state)
            for event in events { state.record(event) }
        case .naming: throw .invalidState("the blob area publishes files")
        case .outbox(let change): removed.events = apply(change, to: &state)
        }
        return removed
    }

    /// - Returns: the numbers of dropped events.
    private static func apply(_ change: CatalogChange.OutboxChange, to state: inout State) -> [Int64] {
        switch change {
        case .remove(let numbers):
            let numbers = Set(numbers)
            state.events.removeAll { numbers.contains($0.number) }
        case .setAside(let numbers):
            for index in state.events.indices where numbers.contains(state.events[index].number) {
                state.events[index].state = .setAside
            }
        case .drop(let time, let limit, let isOnlySetAside):
            let candidates = state.events.filter { !isOnlySetAside || $0.state == .setAside }
            let numbers = candidates.prefix(limit).filter { $0.event.time < time }.map(\.number)
            let dropped = Set(numbers)
            state.events.removeAll { dropped.contains($0.number) }
            return numbers
        }
        return []
    }

    private static func update(
        _ id: UploadID, _ epoch: Int64, _ change: CatalogChange, in state: inout State,
        if isAllowed: (CatalogRow) -> Bool = { _ in true }
    ) throws(StoreError) {
        guard let row = state.rows[id], row.epoch <= epoch, row.isUnfinished, isAllowed(row) else { throw .superseded }
        state.rows[id]?.apply(change)
    }

    package func row(_ id: UploadID) throws(StoreError) -> CatalogRow? { state.withLock { $0.rows[id] } }

    package func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow] {
        rows(where: { _ in true }, after: id, limit: limit)
    }

    package func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID] {
        rows(where: { $0 == .processing }, after: id, limit: limit).map(\.id)
    }

    package func processingCount() throws(StoreError) -> Int {
        rows(where: { $0 == .processing }, after: nil, limit: .max).count
    }

    package func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes] {
        rows(where: { $0 == .receiving }, after: id, limit: limit).map {
            DurableBytes(id: $0.id, blob: $0.blob, offset: $0.offset)
        }
    }

    private func rows(
        where isSelected: (UploadRecord.Phase) -> Bool, after id: UploadID?, limit: Int
    ) -> [CatalogRow] {
        state.withLock { state in
            let rows = state.rows.values.filter { row in
                isSelected(row.phase) && (id.map { $0.bytes.lexicographicallyPrecedes(row.id.bytes) } ?? true)
            }
            return Array(rows.sorted { $0.id.bytes.lexicographicallyPrecedes($1.id.bytes) }.prefix(limit))
        }
    }

    package func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] {
        state.withLock { state in
            let due = state.rows.values.filter(\.isUnfinished)
                .compactMap { row in row.expiresAt.map { (row.id, $0) } }.filter { $0.1 <= now }
            return due.sorted { $0.1 < $1.1 }.prefix(limit).map(\.0)
        }
    }

    package func isExpiring(after time: Int64) throws(StoreError) -> Bool {
        state.withLock { $0.rows.values.contains { row in row.expiresAt.map { $0 > time } ?? false } }
    }

    package func timeMark() throws(StoreError) -> LifetimeClock.Mark? { state.withLock { $0.mark } }

    package func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] {
        state.withLock { Array($0.events.filter { $0.number > number && $0.state != .setAside }.prefix(limit)) }
    }

    package func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] {
        state.withLock { Array($0.events.filter { $0.state == .retried }.prefix(limit)) }
    }

    package func hasEvent(_ number: Int64) throws(StoreError) -> Bool {
        state.withLock { $0.events.contains { $0.number == number && $0.state != .setAside } }
    }

    package func countEvents() throws(StoreError) -> OutboxStatistics {
        state.withLock { state in
            var statistics = OutboxStatistics()
            statistics.setAside = state.events.count { $0.state == .setAside }
            statistics.waiting = state.events.count - statistics.setAside
            statistics.oldest = state.events.first { $0.state == .waiting }?.event.time
            return statistics
        }
    }

    package func sizeInBytes() throws(StoreError) -> Int64 { 0 }

    package func needsBlob(_ name: String) throws(StoreError) -> Bool {
        state.withLock { $0.rows.values.contains { $0.blob == name && $0.isUnfinished } }
    }

    package func file(_ name: String) throws(StoreError) -> FileRecord? { state.withLock { $0.files[name] } }

    package func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] {
        state.withLock { state in
            Array(state.files.values.filter { $0.name > name }.sorted { $0.name < $1.name }.prefix(limit))
        }
    }
}
