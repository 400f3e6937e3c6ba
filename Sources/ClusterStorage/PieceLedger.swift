import SystemCalls

/// The changes of pieces that are not recorded in the database yet. The blob area registers them after their bytes are
/// durable. The catalog records each of them in the same transaction as the change that needs the bytes.
///
/// A transaction with an unknown result can still be carried out later. Before the catalog sends the next change of the
/// same upload, it has to raise the fence of the upload. Otherwise the older change could replace newer pieces.
///
/// An object that no entry has any more is deleted at once if no transaction has got it. Otherwise it is *unneeded* as soon
/// as all these transactions have ended: no later one gets it. The catalog records unneeded objects as garbage, except
/// those that a row names.
package final class PieceLedger: Sendable {
    private struct Entry {
        weak var blob: ObjectBlob?
        let owner: ObjectIdentifier
        /// Distinguishes the entries of several `ObjectBlob` instances with the same name.
        let id: Int
        /// The offset from which the pieces differ from those in the database; `nil` if they are the same.
        var from: Int64?
        /// The pieces from `from` on.
        var pieces: [Piece] = []
        /// The number of the last registered change.
        var number = 0

        var objects: [String] { pieces.compactMap(\.object) }
    }

    /// The transactions that record an object.
    private struct Use {
        enum Outcome: Int { case rejected, unknown, recorded }

        /// The number of running transactions that may record it.
        var running = 0
        /// The outcome of the transactions that have ended: `recorded` if the database has contained it, `unknown` if
        /// it may have.
        var outcome = Outcome.rejected

        mutating func note(_ outcome: Outcome) {
            if outcome.rawValue > self.outcome.rawValue { self.outcome = outcome }
        }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        /// The objects that transactions have got: those of entries, and those of running transactions.
        var uses: [String: Use] = [:]
        var unneeded: [String] = []
        /// The last number of an entry or a change.
        var lastNumber = 0

        /// Removes objects from their entry.
        /// - Returns: the objects that no transaction has recorded or tried to record.
        mutating func drop(_ objects: [String]) -> [String] {
            objects.filter { object in
                guard let use = uses[object] else { return true }
                if use.running == 0 { end(use, of: object) }
                return false
            }
        }

        /// Records the outcome of a transaction with a change.
        mutating func end(_ change: PieceChange, _ outcome: Use.Outcome) {
            let needed = Set(entries[change.blob]?.objects ?? [])
            for case let object? in change.pieces.map(\.object) {
                guard var use = uses[object] else { continue }
                use.running -= 1
                use.note(outcome)
                uses[object] = use
                if use.running > 0 { continue }
                if !needed.contains(object) {
                    end(use, of: object)
                } else if use.outcome == .rejected {
                    uses[object] = nil
                }
            }
        }

        /// Removes an object that no entry has any more and that no transaction will record. If the database has
        /// contained it, the transaction that removes its last row records it as garbage.
        private mutating func end(_ use: Use, of object: String) {
            uses[object] = nil
            if use.outcome != .recorded { add(unneeded: [object]) }
        }

        mutating func add(unneeded objects: [String]) {
            // If the database cannot be reached for a long time, further objects remain until their session ends.
            if unneeded.count < PieceLedger.maxUnneeded { unneeded += objects }
        }
    }

    private static let maxUnneeded = 100_000

    private let state = Monitor(State())

    package init() {}

    // MARK: For transactions

    /// The change that the next transaction of the blob has to record; `nil` if the database contains all durable
    /// pieces. Call ``recorded(_:)``, ``rejected(_:)`` or ``outcomeBecameUnknown(of:)`` after the transaction. Until it
    /// is recorded, the same pieces are a part of the next change.
    package func change(of blob: String) -> PieceChange? {
        state.withLock { state in
            guard let entry = state.entries[blob], let from = entry.from else { return nil }
            for object in entry.objects { state.uses[object, default: Use()].running += 1 }
            return PieceChange(blob: blob, from: from, pieces: entry.pieces, entry: entry.id, number: entry.number)
        }
    }

    /// Called after a transaction with this change was committed.
    package func recorded(_ change: PieceChange) {
        state.withLock { state in
            if var entry = state.entries[change.blob], let from = entry.from, entry.id == change.entry {
                if change.number == entry.number {
                    (entry.from, entry.pieces) = (nil, [])
                } else if from == change.from {
                    // Other pieces were registered meanwhile. The first of them may be those that are recorded now.
                    let count = zip(entry.pieces, change.pieces).prefix { $0 == $1 }.count
                    entry.from = count == 0 ? from : entry.pieces[count - 1].end
                    entry.pieces.removeFirst(count)
                }
                state.entries[change.blob] = entry
            }
            state.end(change, .recorded)
        }
    }

    /// Called after the transaction with this change failed, and certainly was not committed.
    package func rejected(_ change: PieceChange) { state.withLock { $0.end(change, .rejected) } }

    /// Called after the connection was lost during the transaction with this change.
    package func outcomeBecameUnknown(of change: PieceChange) { state.withLock { $0.end(change, .unknown) } }

    /// Removes and returns unneeded objects, at most 1000. No entry has them, and no running or later transaction gets
    /// them. A row names them only if a transaction whose outcome became unknown before this call was committed. Call
    /// ``add(unneeded:)`` if they could not be recorded as garbage.
    package func takeUnneeded() -> [String] {
        state.withLock { state in
            defer { state.unneeded.removeFirst(min(1000, state.unneeded.count)) }
            return Array(state.unneeded.prefix(1000))
        }
    }

    /// Adds objects that no transaction gets.
    func add(unneeded objects: [String]) { state.withLock { $0.add(unneeded: objects) } }

    // MARK: For blobs

    /// Begins to record the changes of a blob. Changes that another instance for the same bytes has registered are
    /// dropped.
    /// - Returns: objects that no transaction has recorded or can record.
    func add(_ blob: ObjectBlob) -> [String] {
        state.withLock { state in
            state.lastNumber += 1
            let previous = state.entries.updateValue(
                Entry(blob: blob, owner: ObjectIdentifier(blob), id: state.lastNumber), forKey: blob.name)
            return state.drop(previous?.objects ?? [])
        }
    }

    /// Ends the recording for an `ObjectBlob`. Called when nothing uses this instance any more.
    /// - Returns: objects that no transaction has recorded or can record.
    func remove(_ name: String, of owner: ObjectIdentifier) -> [String] {
        state.withLock { state in
            guard let entry = state.entries[name], entry.owner == owner else { return [] }
            state.entries[name] = nil
            return state.drop(entry.objects)
        }
    }

    /// The blob with this name, if it is open.
    func blob(_ name: String) -> ObjectBlob? { state.withLock { $0.entries[name]?.blob } }

    /// The offset before which the database has all registered pieces of a blob; 0 if another instance records its changes.
    func recordedEnd(of name: String, by owner: ObjectIdentifier) -> Int64 {
        state.withLock { state in
            guard let entry = state.entries[name], entry.owner == owner else { return 0 }
            return entry.from ?? .max
        }
    }

    /// Registers the pieces of a blob from the byte `from` on. They replace all others from this byte on.
    /// - Parameter new: the objects that were not registered before.
    /// - Returns: objects that no transaction has recorded or can record any more.
    func register(
        _ name: String, of owner: ObjectIdentifier, from: Int64, _ pieces: [Piece], new: Set<String>
    ) -> [String] {
        state.withLock { state in
            guard var entry = state.entries[name], entry.owner == owner else { return Array(new) }
            state.lastNumber += 1
            let old = entry
            entry.number = state.lastNumber
            if let first = entry.from, first < from {
                entry.pieces = entry.pieces.filter { $0.end <= from } + pieces
            } else {
                entry.from = from
                entry.pieces = pieces
            }
            let objects = Set(entry.objects)
            // The database already contains the objects that are neither new nor in the previous change.
            for object in objects.subtracting(new).subtracting(old.objects) {
                state.uses[object, default: Use()].note(.recorded)
            }
            state.entries[name] = entry
            return state.drop(old.objects.filter { !objects.contains($0) }) + new.filter { !objects.contains($0) }
        }
    }
}
