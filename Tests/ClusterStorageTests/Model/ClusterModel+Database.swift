import ClusterStorage

extension ClusterModel {
    /// The tables. ``apply(_:)`` does what the functions of ClusterSQL do; each call is one transaction.
    struct DatabaseState: Hashable {
        struct Session: Hashable {
            /// The end of the session; nil: another node has marked the session as ended.
            var aliveUntil: Int64?
            var batch: Int64 = 0
            var process: Int
            /// The number of the call that has opened it.
            var opening: Int
        }

        struct Row: Hashable {
            var holder: Int64?
            var fence: Int64 = 1
            var offset = 0
            var exists = true
            var isProcessing = false
            var isComplete = false
            /// The entity tag in the final response.
            var tag: Int?
        }

        var sessions: [Int64: Session] = [:]
        var lastSession: Int64 = 0
        var row = Row()
        var pieces: [Piece] = []
        var garbage: Set<Key> = []
        /// The entity tag of the published file, which has the bytes of the upload.
        var file: Int?

        mutating func openSession(of process: Int, _ opening: Int, until time: Int64) -> Int64 {
            lastSession += 1
            sessions[lastSession] = Session(aliveUntil: time, process: process, opening: opening)
            return lastSession
        }
    }

    /// The clock of the database.
    private var databaseTime: Int64 { time + clockDifference }

    /// Whether a session has not ended: its end is in the future, and not later than the end of any session can be.
    func isAlive(_ session: DatabaseState.Session) -> Bool {
        guard let end = session.aliveUntil else { return false }
        return databaseTime < end && end <= databaseTime + max(4, limits.secondEnd)
    }

    /// Performs a call at the current time of the model.
    mutating func apply(_ request: Request) -> Response {
        switch request {
        case .put(let key, let bytes, _, _):
            objects[key] = bytes
            return .done
        case .delete(let key):
            objects[key] = nil
            return .done
        case .open(let process, let number, let keptFence):
            let isLate = database.sessions.values.contains { $0.process == process && $0.opening > number }
            if isLate && mutation != .lateOpeningEndsSession { return .rejected }
            if mutation != .openingKeepsSessions {
                for (other, session) in database.sessions where session.process == process {
                    database.sessions[other]?.aliveUntil = nil
                }
            }
            let session = database.openSession(of: process, number, until: databaseTime + 2)
            let isCurrent = keptFence == database.row.fence || mutation == .adoptionIgnoresFence
            let adopts = keptFence != nil && isCurrent && database.row.isProcessing && !database.row.isComplete
            if adopts { database.row.holder = session }
            return .opened(session, adopted: adopts)
        case .renew(let session):
            guard var row = database.sessions[session] else { return .sessionEnded }
            if mutation != .endedSessionsAreRenewed && databaseTime >= row.aliveUntil ?? .min { return .sessionEnded }
            row.aliveUntil = databaseTime + 2
            database.sessions[session] = row
            return .done
        case .resolve(let session):
            guard database.sessions[session] != nil else { return .sessionEnded }
            if mutation != .outcomesStayUnknown { database.sessions[session]?.batch += 1 }
            return .number(database.sessions[session]?.batch ?? 0)
        case .acquire(let session, let batch):
            if mutation != .acquisitionIgnoresBatch, let ending = reject(session, batch) { return ending }
            return acquire(session)
        case .publish(let session, let batch, let tag):
            if mutation != .publicationIgnoresBatch, let ending = reject(session, batch) { return ending }
            if database.row.exists || database.file != nil { return .rejected }
            let hasRow = !limits.isPlain && mutation != .publicationWithoutRow
            if hasRow { database.row = DatabaseState.Row(isComplete: true, tag: tag) }
            database.file = tag
            return .done
        case .confirm(let tag): return database.file == tag ? .done : .rejected
        case .confirmRow(let tag):
            let isMade = database.row.tag == tag || mutation == .confirmationIgnoresResponse
            return database.row.isComplete && isMade ? .done : .rejected
        case .forget(let session, let batch):
            if let ending = reject(session, batch) { return ending }
            if !database.row.isComplete || mutation == .completeRowIsForgotten { database.row.exists = false }
            return .done
        case .discard(let session, let batch, let keys):
            if let ending = reject(session, batch) { return ending }
            let named = mutation == .garbageIgnoresNames ? [] : Set(database.pieces.map(\.key))
            database.garbage.formUnion(keys.subtracting(named))
            return .done
        case .change(let session, let batch, let fence, let change):
            if let ending = reject(session, batch) { return ending }
            return self.change(session, fence, change)
        case .fence(let session, _):
            return database.row.holder == session ? .number(database.row.fence) : .rejected
        case .release(let session, let fence, _):
            let isCurrent = database.row.fence == fence || mutation == .releaseIgnoresFence
            if database.row.holder == session && isCurrent { database.row.holder = nil }
            return .done
        }
    }

    private mutating func acquire(_ session: Int64) -> Response {
        guard database.row.exists else { return .missing }
        if database.row.isComplete { return .finished(content) }
        if database.row.holder != session || mutation != .usesShareFence {
            guard isFree(for: session) else {
                if let holder = database.row.holder {
                    notifications.insert(Notification(receiver: holder, requester: session))
                }
                return .heldElsewhere
            }
            guard let end = database.sessions[session]?.aliveUntil, databaseTime < end else { return .sessionEnded }
            database.row.holder = session
            database.row.fence += 1
        }
        return .acquired(
            Memory(
                fence: database.row.fence, content: content, pieces: database.pieces,
                isProcessing: database.row.isProcessing && mutation != .processingIsRepeated))
    }

    /// Whether a session can become the holder. If the session of the holder has ended, this function marks it as
    /// ended.
    private mutating func isFree(for session: Int64) -> Bool {
        guard let holder = database.row.holder, holder != session, mutation != .acquisitionIgnoresHolder else {
            return true
        }
        guard let holding = database.sessions[holder], holding.aliveUntil != nil else { return true }
        if isAlive(holding) { return false }
        database.sessions[holder]?.aliveUntil = nil
        return true
    }

    private func reject(_ session: Int64, _ batch: Int64) -> Response? {
        guard let row = database.sessions[session] else {
            return mutation == .changesIgnoreEndedSession ? nil : .sessionEnded
        }
        return row.batch == batch ? nil : .batchEnded
    }

    /// Removes the row.
    private mutating func remove(_ session: Int64, _ fence: Int64) -> Response {
        guard database.row.exists else { return .done }
        let isOvertaken = database.row.fence > fence || (!database.row.isComplete && !isFree(for: session))
        if isOvertaken { return mutation == .removalIgnoresHold ? .done : .heldElsewhere }
        database.garbage.formUnion(database.pieces.map(\.key))
        database.pieces = []
        database.row = DatabaseState.Row(fence: database.row.fence, exists: false)
        return .done
    }

    private mutating func change(_ session: Int64, _ fence: Int64, _ change: Change) -> Response {
        if change.effect == .remove { return remove(session, fence) }
        let isHolder =
            mutation == .changesIgnoreFence || (database.row.holder == session && database.row.fence == fence)
        guard isHolder, database.row.exists, !database.row.isComplete else {
            if mutation == .publicationIgnoresRefusal, case .complete(let tag?) = change.effect { database.file = tag }
            return .rejected
        }
        let end = change.pieces.last?.end ?? database.pieces.last?.end ?? 0
        if change.offset > end, mutation != .offsetIgnoresPieces { return .rejected }
        if !change.pieces.isEmpty {
            let kept = database.pieces.filter { $0.start < change.from }
            let new = change.pieces.map(\.key)
            guard (kept.last?.end ?? 0) == change.from, database.garbage.isDisjoint(with: new) else { return .rejected }
            database.garbage.formUnion(database.pieces.map(\.key).filter { key in !kept.contains { $0.key == key } })
            database.garbage.subtract(new)
            database.pieces = kept + change.pieces
        }
        database.row.offset = max(database.row.offset, change.offset)
        switch change.effect {
        case .advance, .remove: break
        case .process: database.row.isProcessing = true
        case .complete(let tag):
            completed.append(content)
            (database.row.isComplete, database.row.tag, database.row.holder) = (true, tag, nil)
            if let tag { database.file = tag }
        }
        return .done
    }

    /// The bytes of the pieces in the table.
    var content: [UInt8] { database.pieces.flatMap { objects[$0.key]?.prefix($0.size) ?? [] } }
}
