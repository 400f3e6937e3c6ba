import SystemCalls

/// The changes of pieces that are not recorded in the database yet. The blob area registers them after their bytes are
/// durable. The catalog records each of them in the same transaction as the change that needs the bytes.
///
/// A transaction with an unknown result can still be carried out later. Before the catalog sends the next change of the
/// same upload, it has to raise the fence of the upload. Otherwise the older change could replace newer pieces.
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
        /// The objects of `pieces` that a transaction may record or has recorded, with the number of such transactions.
        var sent: [String: Int] = [:]

        mutating func removeUnneeded() {
            let objects = Set(pieces.compactMap(\.object))
            sent = sent.filter { objects.contains($0.key) }
        }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        /// The last number of an entry or a change.
        var lastNumber = 0
    }

    private let state = Monitor(State())

    package init() {}

    // MARK: For transactions

    /// The change that the next transaction of the blob has to record; `nil` if the database contains all durable
    /// pieces. Call ``recorded(_:)`` after the transaction was committed, and ``rejected(_:)`` after it was certainly
    /// not committed. Until it is recorded, the same pieces are a part of the next change.
    package func change(of blob: String) -> PieceChange? {
        state.withLock { state in
            guard var entry = state.entries[blob], let from = entry.from else { return nil }
            for case let object? in entry.pieces.map(\.object) { entry.sent[object, default: 0] += 1 }
            state.entries[blob] = entry
            return PieceChange(blob: blob, from: from, pieces: entry.pieces, entry: entry.id, number: entry.number)
        }
    }

    /// Called after a transaction with this change was committed.
    package func recorded(_ change: PieceChange) {
        state.withLock { state in
            guard var entry = state.entries[change.blob], let from = entry.from, entry.id == change.entry else {
                return
            }
            if change.number == entry.number {
                (entry.from, entry.pieces, entry.sent) = (nil, [], [:])
            } else if from == change.from {
                // Other pieces were registered meanwhile. The first of them may be those that are recorded now.
                let count = zip(entry.pieces, change.pieces).prefix { $0 == $1 }.count
                entry.from = count == 0 ? from : entry.pieces[count - 1].end
                entry.pieces.removeFirst(count)
                entry.removeUnneeded()
            }
            state.entries[change.blob] = entry
        }
    }

    /// Called after the transaction with this change failed, and certainly was not committed.
    package func rejected(_ change: PieceChange) {
        state.withLock { state in
            guard state.entries[change.blob]?.id == change.entry else { return }
            for case let object? in change.pieces.map(\.object) {
                guard let count = state.entries[change.blob]?.sent[object] else { continue }
                state.entries[change.blob]?.sent[object] = count > 1 ? count - 1 : nil
            }
        }
    }

    // MARK: For blobs

    /// Begins to record the changes of a blob. Changes that another instance for the same bytes has registered are
    /// dropped.
    /// - Returns: objects that no transaction has recorded or can record.
    func add(_ blob: ObjectBlob) -> [String] {
        state.withLock { state in
            state.lastNumber += 1
            let previous = state.entries.updateValue(
                Entry(blob: blob, owner: ObjectIdentifier(blob), id: state.lastNumber), forKey: blob.name)
            return previous.map(Self.unsent) ?? []
        }
    }

    /// Ends the recording for an `ObjectBlob`. Called when nothing uses this instance any more.
    /// - Returns: objects that no transaction has recorded or can record.
    func remove(_ name: String, of owner: ObjectIdentifier) -> [String] {
        state.withLock { state in
            guard let entry = state.entries[name], entry.owner == owner else { return [] }
            state.entries[name] = nil
            return Self.unsent(entry)
        }
    }

    /// The blob with this name, if it is open.
    func blob(_ name: String) -> ObjectBlob? { state.withLock { $0.entries[name]?.blob } }

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
            let objects = Set(entry.pieces.compactMap(\.object))
            // The database already contains the objects that are neither new nor in the previous change.
            let recorded = objects.subtracting(new).subtracting(old.pieces.compactMap(\.object))
            for object in recorded { entry.sent[object, default: 0] += 1 }
            entry.removeUnneeded()
            state.entries[name] = entry
            return (Self.unsent(old) + new).filter { !objects.contains($0) }
        }
    }

    private static func unsent(_ entry: Entry) -> [String] {
        entry.pieces.compactMap(\.object).filter { entry.sent[$0] == nil }
    }
}
