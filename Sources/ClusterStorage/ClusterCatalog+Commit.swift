import HTTPSemantics
import PostgreSQL
import ResumableUpload
import UploadStorage

/// The statements of one change.
private struct ChangeStatements {
    enum Kind {
        /// The first row has the refusal, or 0, in its first column.
        case refusable
        /// The first row also has the numbers of removed rows.
        case removal
        /// The rows have the numbers of dropped events.
        case events
        case plain
    }

    var kind = Kind.plain
    var statements: [DatabaseStatement] = []
    /// The pieces that are recorded if the change is made.
    var pieces: PieceChange?
    /// The numbers of events that are recorded if the change is made.
    var events = 0
    /// The uploads that are finished or removed if the change is made.
    var ended: [UploadID] = []
    /// The new upload that this session then holds.
    var inserted: CatalogRow?
    /// The upload that its target resource processes if the change is made, and the fence of the change.
    var processing: (id: UploadID, fence: Int64)?
}

/// The earlier changes of a batch.
private struct BatchContext {
    /// The blobs whose pieces earlier changes record.
    var blobs: Set<String> = []
    /// The blobs of the uploads that earlier changes insert.
    var inserted: [UploadID: String] = [:]
}

/// A statement that makes a change and, if the change is not refused, its effects.
private struct ConditionalStatement {
    var change: String
    var parameters: [DatabaseValue]
    var effects: [(ClusterSQL.Effect, parameters: Range<Int>)] = []

    init(_ change: String, _ parameters: [DatabaseValue] = []) { (self.change, self.parameters) = (change, parameters) }

    mutating func add(_ effect: ClusterSQL.Effect, _ values: [DatabaseValue]) {
        let first = parameters.count + 1
        effects.append((effect, first..<first + values.count))
        parameters += values
    }

    var statement: DatabaseStatement { DatabaseStatement(ClusterSQL.statement(change, with: effects), parameters) }
}

extension ClusterCatalog {
    package func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>] {
        // The clock of the database needs no saved time, and a server that stops need not wait for the database.
        if changes.allSatisfy(\.isTime) { return changes.map { _ in .success(RemovedRows()) } }
        // A publication waits for other publications under the same name, and can be refused. It gets a transaction of
        // its own, so that no other change waits or fails with it.
        let isAlone = changes.contains(where: \.isNaming) && !commits.isClosed
        guard let outcomes = isAlone ? transact(changes) : commits.run(changes, by: { [self] in transact($0) }) else {
            return changes.map { _ in .failure(.superseded) }
        }
        if changes.contains(where: \.canRecordEvents) { node.notifyOfEvents() }
        return outcomes
    }

    /// A transaction begins no other change as soon as its changes have this number of bytes in rows of pieces, so that
    /// it ends in time.
    static let maxBatchData = 16 << 20

    /// Makes all changes in one transaction, or in more if they have many bytes, and returns the outcome of each.
    private func transact(_ batch: [CatalogChange]) -> [Outcome] {
        var outcomes: [Outcome] = []
        while outcomes.count < batch.count { outcomes += transactFirst(of: Array(batch[outcomes.count...])) }
        return outcomes
    }

    /// Makes the first changes in one transaction, and returns the outcome of each.
    private func transactFirst(of batch: [CatalogChange]) -> [Outcome] {
        let ids = batch.compactMap(\.inserted)
        node.session.withLock { session in for id in ids { session.beginAcquiring(id) } }
        defer { node.session.withLock { session in for id in ids { session.endAcquiring(id) } } }
        let principals = limits.isLimited ? Set(batch.compactMap(principal)) : []
        // The outcomes of the transactions that named these objects are known when the transaction below begins.
        let unneeded = ledger.takeUnneeded()
        var changes: [ChangeStatements] = []
        var (number, results): (Int64, [DatabaseRows])
        do throws(DatabaseError) {
            (number, results) = try node.change { number in
                reject(changes)
                changes = firstStatements(for: batch, in: number)
                let lock = DatabaseStatement(ClusterSQL.lockPrincipals, [.texts(Array(principals))])
                let garbage = DatabaseStatement(ClusterSQL.addUnneeded, [.texts(unneeded)])
                return (principals.isEmpty ? [] : [lock]) + changes.flatMap(\.statements)
                    + (unneeded.isEmpty ? [] : [garbage])
            }
        } catch {
            ledger.add(unneeded: unneeded)
            if error.isPossiblyCommitted {
                for case let pieces? in changes.map(\.pieces) { ledger.outcomeBecameUnknown(of: pieces) }
            } else {
                reject(changes)
            }
            return failed(batch, sent: changes.count, error)
        }
        if !principals.isEmpty { results.removeFirst() }
        return record(changes, results, bySession: number)
    }

    /// Records what a committed transaction has changed, and returns the outcome of each change.
    private func record(
        _ changes: [ChangeStatements], _ results: [DatabaseRows], bySession number: Int64
    ) -> [Outcome] {
        var outcomes: [Outcome] = []
        var events = 0
        var position = 0
        for change in changes {
            var outcome = outcome(of: change, results[position..<position + change.statements.count])
            if outcome == .failure(.superseded), change.kind == .refusable, let id = change.ended.first,
                node.session.withLock({ $0.canRepeat(id, of: number) })
            {
                outcome = .failure(.unavailable("the session was opened again"))
            }
            position += change.statements.count
            outcomes.append(outcome)
            guard case .success(let removed) = outcome else {
                reject([change])
                continue
            }
            events += change.kind == .removal ? min(change.events, removed.unfinished) : change.events
            if let pieces = change.pieces { ledger.recorded(pieces) }
            node.session.withLock { session in
                for id in change.ended { session.removeHold(id) }
                if let (id, fence) = change.processing { session.set(isProcessing: true, id, fence: fence) }
                if let row = change.inserted, row.isUnfinished {
                    let hold = NodeSession.Hold(fence: 1, blob: row.blob, principal: row.upload.principal)
                    session.acquired(row.id, hold, by: number)
                }
            }
        }
        counts.withLock { [events] counts in
            counts.transactions += 1
            counts.changes += changes.count
            counts.events += events
        }
        return outcomes
    }

    /// Reports to the ledger that the pieces of these changes were not recorded.
    private func reject(_ changes: [ChangeStatements]) {
        for case let pieces? in changes.map(\.pieces) { ledger.rejected(pieces) }
    }

    /// - Parameter count: the number of changes that the transaction contained.
    private func failed(_ batch: [CatalogChange], sent count: Int, _ error: DatabaseError) -> [Outcome] {
        let isRejected = error.sqlState.map { $0 != ClusterSQL.CatalogError.sessionEnded } ?? false
        // If the database has not rejected the changes, another transaction would fail, too.
        guard isRejected, count > 0 else { return batch.map { _ in .failure(StoreError(error)) } }
        if count == 1 { return [.failure(StoreError(error))] }
        // Each change now gets its own transaction, so that only the failing change fails.
        var outcomes: [Outcome] = []
        var failures = 0
        for change in batch.prefix(count) {
            let outcome = transactFirst(of: [change])[0]
            outcomes.append(outcome)
            // One change can fail because of another transaction. After two of them, each of the others would probably wait for
            // the database, one after the other.
            if case .failure(.unavailable) = outcome { failures += 1 } else { failures = 0 }
            if failures == 2 { return outcomes + batch[outcomes.count...].map { _ in outcome } }
        }
        return outcomes
    }

    private func outcome(of change: ChangeStatements, _ results: ArraySlice<DatabaseRows>) -> Outcome {
        var removed = RemovedRows()
        guard let rows = results.first else { return .success(removed) }
        switch change.kind {
        case .plain: break
        case .events: removed.events = (0..<rows.count).compactMap { rows.integer($0, 0) }
        case .refusable, .removal:
            if let refusal = refusal(rows.integer(0, 0)) { return .failure(refusal) }
            if change.kind == .removal {
                removed.unfinished = Int(rows.integer(0, 1) ?? 0)
                removed.complete = Int(rows.integer(0, 2) ?? 0)
                removed.invalid = Int(rows.integer(0, 3) ?? 0)
            }
        }
        return .success(removed)
    }

    private func refusal(_ number: Int64?) -> StoreError? {
        switch number {
        case 0: nil
        case ClusterSQL.Refusal.exists: .invalidState("an upload with this identifier or blob exists")
        case ClusterSQL.Refusal.tooManyUploads: .tooManyUploads(limit: Int(limits.maxUploads ?? 0))
        case ClusterSQL.Refusal.quotaExceeded: .quotaExceeded(limit: limits.quota ?? 0)
        case ClusterSQL.Refusal.heldElsewhere: .heldElsewhere
        default: .superseded
        }
    }

    /// The principal whose limits the change may exceed.
    private func principal(_ change: CatalogChange) -> String? {
        switch change {
        case .insert(let row, _): row.isUnfinished ? row.upload.principal : nil
        case .advance(let advance): node.session.withLock { $0.lastHold(advance.id)?.principal }
        case .reporting(let change, _), .naming(let change, _): principal(change)
        default: nil
        }
    }

    // MARK: Statements

    /// The statements of the first changes of a batch, as many as one transaction makes.
    private func firstStatements(for batch: [CatalogChange], in session: Int64) -> [ChangeStatements] {
        var (statements, data, context) = ([ChangeStatements](), 0, BatchContext())
        for change in batch where data < Self.maxBatchData {
            let next = self.statements(for: change, in: session, &context)
            data += next.pieces?.inlineSize ?? 0
            statements.append(next)
        }
        return statements
    }

    /// - Parameter batch: describes the earlier changes of the batch.
    private func statements(
        for change: CatalogChange, in session: Int64, _ batch: inout BatchContext
    ) -> ChangeStatements {
        var (change, events, naming) = (change, [UploadEvent](), CatalogChange.Naming?.none)
        while true {
            if case .reporting(let inner, let more) = change {
                (change, events) = (inner, more + events)
            } else if case .naming(let inner, let name) = change {
                (change, naming) = (inner, name)
            } else {
                break
            }
        }
        var result = ChangeStatements()
        result.events = events.count
        if var conditional = conditional(change, naming, in: session, &result, &batch) {
            if let naming {
                let (effect, parameters) = change.effect(naming)
                conditional.add(effect, parameters)
            }
            if !events.isEmpty { conditional.add(.recordEvents, Self.parameters(of: events)) }
            result.kind = .refusable
            result.statements.insert(conditional.statement, at: 0)
            return result
        }
        switch change {
        case .delete(let removals):
            result.kind = .removal
            result.events += removals.count { $0.event != nil }
            result.ended = removals.map(\.id)
            result.statements = [Self.deletion(removals, in: session)]
        case .removeFinished(let now, let limit):
            result.kind = .removal
            result.statements = [
                DatabaseStatement(ClusterSQL.removeFinished, [.integer(now), .integer(Int64(limit))])
            ]
        case .limitExpiry(let time, let limit):
            result.statements = [DatabaseStatement(ClusterSQL.limitExpiry, [.integer(time), .integer(Int64(limit))])]
        case .probe: result.statements = [DatabaseStatement(ClusterSQL.probe, [.integer(session)])]
        case .outbox(.remove(let numbers)):
            result.statements = [DatabaseStatement(ClusterSQL.removeEvents, [.integers(numbers)])]
        case .outbox(.setAside(let numbers)):
            result.statements = [DatabaseStatement(ClusterSQL.setEventsAside, [.integers(numbers)])]
        case .outbox(.drop(let time, let limit, let isOnlySetAside)):
            result.kind = .events
            result.statements = [
                DatabaseStatement(
                    isOnlySetAside ? ClusterSQL.dropEventsSetAside : ClusterSQL.dropEvents,
                    [.integer(Int64(limit)), .integer(time), .integer(session)])
            ]
        // `recordFile` and `removeFiles` do nothing, because the record of a file is a part of its row in `onward.name`.
        default: break
        }
        if !events.isEmpty {
            var recording = ConditionalStatement(ClusterSQL.noRefusal)
            recording.add(.recordEvents, Self.parameters(of: events))
            result.statements.append(recording.statement)
        }
        return result
    }

    /// The statement of a change that is refused if this session is not the holder; `nil` for other changes.
    private func conditional(
        _ change: CatalogChange, _ naming: CatalogChange.Naming?, in session: Int64, _ result: inout ChangeStatements,
        _ batch: inout BatchContext
    ) -> ConditionalStatement? {
        let heldBlob = change.fencedUpload.flatMap { id in
            batch.inserted[id] ?? node.session.withLock { $0.lastHold(id)?.blob }
        }
        // Without a hold the pieces of the upload are not known, and its offset must not be recorded without them.
        if change.fencedUpload != nil, heldBlob == nil { return ConditionalStatement(ClusterSQL.superseded) }
        func fenced(
            _ sql: String, _ id: UploadID, _ epoch: Int64, _ others: [DatabaseValue] = []
        ) -> ConditionalStatement {
            ConditionalStatement(sql, [.integer(session), .bytes(id.bytes), .integer(epoch)] + others)
        }
        func addPieces(to statement: inout ConditionalStatement) {
            guard let blob = naming?.blob ?? result.inserted?.blob ?? heldBlob, !batch.blobs.contains(blob),
                let pieces = ledger.change(of: blob)
            else { return }
            batch.blobs.insert(blob)
            statement.add(.putPieces, [.text(blob)] + pieces.parameters)
            result.pieces = pieces
        }
        var statement: ConditionalStatement
        switch change {
        case .insert(let row, _):
            let quota = row.isUnfinished || naming?.isFile ?? false ? limits.quota : nil
            statement = ConditionalStatement(
                ClusterSQL.insertUpload,
                [.integer(session)] + row.parameters + [DatabaseValue(limits.maxUploads), DatabaseValue(quota)])
            result.inserted = row
            batch.inserted[row.id] = row.blob
            addPieces(to: &statement)
        case .advance(let advance):
            let fence = NodeSession.fence(of: advance.epoch)
            node.session.withLock { $0.set(isProcessing: false, advance.id, fence: fence) }
            statement = fenced(
                ClusterSQL.advanceUpload, advance.id, advance.epoch,
                [
                    .integer(advance.offset), DatabaseValue(advance.length),
                    .bytes(DigestStates(advance.digestStates).savedBytes), DatabaseValue(limits.quota),
                ])
            addPieces(to: &statement)
        case .markProcessing(let id, let epoch):
            statement = fenced(ClusterSQL.markProcessing, id, epoch)
            result.processing = (id, NodeSession.fence(of: epoch))
        // A publication is one transaction, so no decision is recorded before it.
        case .recordIntent, .withdraw: return ConditionalStatement(ClusterSQL.superseded)
        case .complete(let completion):
            statement = fenced(
                ClusterSQL.complete, completion.id, completion.epoch,
                [
                    .integer(completion.offset), .bytes(completion.response.savedBytes),
                    DatabaseValue(completion.expiresAt), .bytes(DigestStates([]).savedBytes),
                    .bytes(completion.upload.savedBytes),
                ])
            result.ended = [completion.id]
            addPieces(to: &statement)
        case .invalidate(let invalidation):
            statement = fenced(
                ClusterSQL.invalidate, invalidation.id, invalidation.epoch,
                [
                    .text(invalidation.reason), DatabaseValue(invalidation.expiresAt),
                    .bytes(DigestStates([]).savedBytes), .bytes(invalidation.upload.savedBytes),
                ])
            result.ended = [invalidation.id]
        case .recordFile(let file, _) where naming != nil:
            // An upload without a row publishes its file.
            statement = ConditionalStatement(
                ClusterSQL.admit,
                [.text(file.principal), .integer(0), .integer(file.size), .null, DatabaseValue(limits.quota)])
            addPieces(to: &statement)
        default:
            if naming == nil { return nil }
            statement = ConditionalStatement(ClusterSQL.noRefusal)
            addPieces(to: &statement)
        }
        return statement
    }

    private static func deletion(_ removals: [CatalogChange.Removal], in session: Int64) -> DatabaseStatement {
        DatabaseStatement(
            ClusterSQL.deleteUploads,
            [
                .integer(session), .byteArrays(removals.map(\.id.bytes)), .integers(removals.map(\.epoch)),
                .integers(removals.map { $0.event?.time }), .byteArrays(removals.map { $0.event?.savedBytes }),
            ])
    }

    private static func parameters(of events: [UploadEvent]) -> [DatabaseValue] {
        [.integers(events.map(\.time)), .byteArrays(events.map(\.savedBytes))]
    }
}

extension CatalogChange {
    /// The upload whose row this change modifies, if only the holder of the upload may do that.
    fileprivate var fencedUpload: UploadID? {
        switch self {
        case .advance(let advance): advance.id
        case .markProcessing(let id, _): id
        case .complete(let completion): completion.id
        case .invalidate(let invalidation): invalidation.id
        default: nil
        }
    }

    /// The upload that this change inserts.
    fileprivate var inserted: UploadID? {
        switch self {
        case .insert(let row, _): row.id
        case .reporting(let change, _), .naming(let change, _): change.inserted
        default: nil
        }
    }

    fileprivate var isTime: Bool { if case .recordTime = self { true } else { false } }

    fileprivate var isNaming: Bool { if case .naming = self { true } else { false } }
}
