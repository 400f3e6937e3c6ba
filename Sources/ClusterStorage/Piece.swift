import PostgreSQL
import UploadStorage

/// A part of the bytes of a blob, which never changes: the first `size` bytes of an object, or bytes in the row of the
/// piece.
package struct Piece: Sendable, Hashable {
    package enum Storage: Sendable, Hashable {
        /// The key of the object.
        case object(String)
        case inline([UInt8])
    }

    /// The offset in the blob of the first byte of the piece.
    package var start: Int64
    package var size: Int
    package var storage: Storage

    package init(start: Int64, size: Int, storage: Storage) {
        self.start = start
        self.size = size
        self.storage = storage
    }

    var end: Int64 { start + Int64(size) }

    var object: String? {
        if case .object(let key) = storage { key } else { nil }
    }

    /// The number of bytes in the row of the piece.
    var inlineSize: Int {
        if case .inline(let bytes) = storage { bytes.count } else { 0 }
    }

    /// The bytes before `offset`, which is inside the piece.
    func prefix(upTo offset: Int64) -> Piece {
        let size = Int(offset - start)
        guard case .inline(let bytes) = storage else { return Piece(start: start, size: size, storage: storage) }
        return Piece(start: start, size: size, storage: .inline(Array(bytes.prefix(size))))
    }
}

/// The sizes of pieces and of the memory for them, and the time to store them.
struct PieceLimits: Sendable {
    /// The maximum number of bytes in a piece.
    var maxSize = 8 << 20
    /// The maximum number of bytes in the row of a piece.
    var maxInlineSize = 64 << 10
    /// The number of bytes of memory that are reserved first for a piece. The reservation is doubled while bytes
    /// arrive.
    var minMemory = 64 << 10
    /// The maximum number of pieces in a list that is read from the database. With pieces of `maxSize` it covers 8 GiB.
    var maxListed = 1024
    /// A list ends as soon as its rows contain this number of bytes of the blob.
    var maxListedData = 1 << 20
    /// The same limit for the list of the last pieces of an upload, which stays in memory. Pieces that can become one
    /// piece with the bytes that follow have less: see ``ObjectBlob``.
    var maxLastData: Int { 2 * maxInlineSize }
    /// The maximum number of bytes in all buffers.
    var memory = 256 << 20
    /// The time in which ``ObjectBlob/synchronize(including:)`` ends. A client waits for it.
    var synchronizationTime = Duration.seconds(30)
    /// The time for which the first piece waits until the storage belongs to the database: see ``PieceCollector``.
    var claimWait = Duration.zero
}

/// The statements that list pieces.
extension PieceLimits {
    /// Opens a published file, and lists its first pieces.
    func openFile(_ name: PublishedName) -> DatabaseStatement {
        DatabaseStatement(ClusterSQL.openFile, name.entry + [count, .integer(Int64(maxListedData))])
    }

    /// Lists pieces of a blob from the one with the byte at `offset` on.
    func pieces(of blob: String, from offset: Int64) -> DatabaseStatement {
        DatabaseStatement(
            ClusterSQL.piecesFrom, [.text(blob), .integer(offset), count, .integer(Int64(maxListedData))])
    }

    /// Lists the last pieces of an upload that begin before the byte at `offset`.
    func pieces(of blob: String, before offset: Int64) -> DatabaseStatement {
        DatabaseStatement(
            ClusterSQL.piecesBefore, [.text(blob), .integer(offset), count, .integer(Int64(maxLastData))])
    }

    private var count: DatabaseValue { .integer(Int64(maxListed)) }
}

extension [Piece] {
    var end: Int64 { last?.end ?? 0 }

    /// Whether a list of the first pieces may lack pieces because of these limits.
    func isFull(_ limits: PieceLimits) -> Bool {
        count >= limits.maxListed || reduce(0) { $0 + $1.inlineSize } >= limits.maxListedData
    }

    /// The index of the piece that contains the byte at `offset`; `endIndex` if there is none.
    func index(containing offset: Int64) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if self[middle].end <= offset { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Reads a piece from each row. Its columns `start`, `size`, `object` and `data` begin at `first`. Rows without a
    /// piece are skipped.
    init(_ rows: DatabaseRows, firstColumn first: Int = 0) {
        self.init()
        reserveCapacity(rows.count)
        for row in 0..<rows.count {
            guard let start = rows.integer(row, first), let size = rows.integer(row, first + 1) else { continue }
            let storage: Piece.Storage =
                rows.text(row, first + 2).map { .object($0) } ?? .inline(rows.bytes(row, first + 3) ?? [])
            append(Piece(start: start, size: Int(size), storage: storage))
        }
    }
}

/// A change that replaces all pieces of a blob from a byte on.
package struct PieceChange: Sendable, Hashable {
    package var blob: String
    package var from: Int64
    /// The new pieces; the first of them begins at `from`.
    package var pieces: [Piece]
    /// The numbers of the entry and of the change in the ledger.
    let entry: Int
    let number: Int

    /// The number of bytes in the rows of the pieces.
    var inlineSize: Int { pieces.reduce(0) { $0 + $1.inlineSize } }

    /// The five parameters of `onward.put_pieces` after the blob: `from_`, `starts`, `sizes`, `objects` and `data`.
    package var parameters: [DatabaseValue] {
        [
            .integer(from), .integers(pieces.map(\.start)), .integers(pieces.map { Int64($0.size) }),
            .texts(pieces.map(\.object)),
            .byteArrays(
                pieces.map { piece in
                    if case .inline(let bytes) = piece.storage { bytes } else { nil }
                }),
        ]
    }
}
