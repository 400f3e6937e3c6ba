import SystemCalls

/// The catalogue as a value in memory. What has been committed is durable.
package final class MemoryCatalogue: UploadCatalogue {
    private struct State {
        var rows: [UploadID: CatalogueRow] = [:]
        var files: [String: FileRecord] = [:]
        var mark: LifetimeClock.Mark?
        var statistics = CatalogueStatistics()
        var isClosed = false
    }

    private let state: Monitor<State>
    private let plan: FaultPlan

    package init(plan: FaultPlan = FaultPlan()) {
        self.plan = plan
        state = Monitor(State())
    }

    private init(_ state: sending State, plan: FaultPlan) {
        self.state = Monitor(state)
        self.plan = plan
    }

    /// What the next process finds, whatever ended this one.
    package func durableImage(plan: FaultPlan = FaultPlan()) -> MemoryCatalogue {
        let (rows, files, mark) = state.withLock { ($0.rows, $0.files, $0.mark) }
        return MemoryCatalogue(State(rows: rows, files: files, mark: mark), plan: plan)
    }

    package var statistics: CatalogueStatistics { state.withLock { $0.statistics } }

    package func close() { state.withLock { $0.isClosed = true } }

    package func commit(_ change: CatalogueChange) throws(StoreError) {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            try translating("write the catalogue") { () throws(Errno) in try plan.step(.commit) }
            state.statistics.commits += 1
            state.statistics.transactions += 1
            try Self.apply(change, to: &state)
            try translating("write the catalogue") { () throws(Errno) in try plan.step(.committed) }
        }
    }

    private static func apply(_ change: CatalogueChange, to state: inout State) throws(StoreError) {
        switch change {
        case .insert(let row):
            guard state.rows[row.id] == nil else { throw .invalidState("an upload of this name exists") }
            state.rows[row.id] = row
        case .advance(let advance):
            try update(advance.id, advance.epoch, in: &state) { (row) throws(StoreError) in
                if row.intent != nil { throw .superseded }
                row.offset = max(row.offset, advance.offset)
                row.length = advance.length ?? row.length
                row.digestStates = advance.digestStates
                row.phase = .receiving
            }
        case .markProcessing(let id, let epoch):
            try update(id, epoch, in: &state) { (row) throws(StoreError) in
                if row.intent != nil { throw .superseded }
                row.phase = .processing
            }
        case .intend(let id, let epoch, let intent):
            try update(id, epoch, in: &state) { row in
                row.phase = .processing
                row.intent = intent
            }
        case .complete(let completion):
            try update(completion.id, completion.epoch, in: &state) { row in
                row.offset = max(row.offset, completion.offset)
                row.phase = .complete(completion.response)
                row.upload = completion.upload
                row.expiresAt = completion.expiresAt
                row.intent = nil
                row.digestStates = []
            }
            if let file = completion.file { state.files[file.name] = file }
        case .invalidate(let invalidation):
            try update(invalidation.id, invalidation.epoch, in: &state) { row in
                row.phase = .invalid(reason: invalidation.reason)
                row.upload = invalidation.upload
                row.expiresAt = invalidation.expiresAt
                row.intent = nil
                row.digestStates = []
            }
        case .delete(let id, let epoch):
            if let row = state.rows[id], row.epoch <= epoch { state.rows[id] = nil }
        case .recordFile(let file): state.files[file.name] = file
        case .removeFiles(let names): for name in names { state.files[name] = nil }
        case .recordTime(let mark): state.mark = mark
        case .limitExpiry(let limit):
            for (id, row) in state.rows { state.rows[id]?.expiresAt = row.expiresAt.map { min($0, limit) } }
        case .probe: break
        }
    }

    private static func update(
        _ id: UploadID, _ epoch: Int64, in state: inout State,
        _ body: (inout CatalogueRow) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard var row = state.rows[id], row.epoch <= epoch, row.isUnfinished else { throw .superseded }
        row.epoch = epoch
        try body(&row)
        state.rows[id] = row
    }

    package func row(_ id: UploadID) throws(StoreError) -> CatalogueRow? { state.withLock { $0.rows[id] } }

    package func unfinishedRows() throws(StoreError) -> [CatalogueRow] {
        state.withLock { $0.rows.values.filter(\.isUnfinished) }
    }

    package func processing() throws(StoreError) -> [UploadID] {
        state.withLock { $0.rows.values.filter { $0.phase == .processing }.map(\.id) }
    }

    package func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] {
        state.withLock { state in
            let due = state.rows.values.compactMap { row in row.expiresAt.map { (row.id, $0) } }.filter { $0.1 <= now }
            return due.sorted { $0.1 < $1.1 }.prefix(limit).map(\.0)
        }
    }

    package func finishedCounts() throws(StoreError) -> (complete: Int, invalid: Int) {
        state.withLock { state in
            state.rows.values.reduce(into: (complete: 0, invalid: 0)) { counts, row in
                switch row.phase {
                case .complete: counts.complete += 1
                case .invalid: counts.invalid += 1
                case .receiving, .processing: break
                }
            }
        }
    }

    package func timeMark() throws(StoreError) -> LifetimeClock.Mark? { state.withLock { $0.mark } }

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

    package func publishedBytes() throws(StoreError) -> [String: Int64] {
        state.withLock { state in
            state.files.values.reduce(into: [:]) { $0[$1.principal, default: 0] += $1.size }
        }
    }
}
