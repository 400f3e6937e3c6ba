import HTTPSemantics
import ObjectStorage
import SystemCalls
import UploadStorage

/// The bytes of a published file, or the first bytes of an upload, whose pieces are in the database and do not change. A
/// part of the list of the pieces is in memory.
///
/// A file that is replaced or removed has no rows of pieces any more. Then the listed pieces can still be read, until a
/// collector deletes their objects.
final class RecordedPieces: PublishedContent {
    private let blob: String
    let size: Int64
    private let storage: PieceStorage
    private let reader: ObjectReader
    /// The consecutive pieces whose list is in memory.
    private let listed: Monitor<[Piece]>

    /// - Parameter first: a list of the first pieces, if they have been read.
    init(of blob: String, size: Int64, first: [Piece] = [], storage: PieceStorage) {
        self.blob = blob
        self.size = size
        self.storage = storage
        reader = ObjectReader(storage)
        listed = Monitor(first)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        var count = 0
        while count < buffer.count {
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let position = offset + Int64(count)
            guard position < size else { break }
            let pieces = try pieces(from: position)
            let index = pieces.index(containing: position)
            let piece = pieces[index]
            if case .inline(let bytes) = piece.storage {
                count += part.copy(bytes, from: Int(position - piece.start))
                continue
            }
            let following = index + 1 < pieces.endIndex ? pieces[index + 1] : nil
            do throws(ObjectError) {
                count += try reader.read(piece, following: following, at: position, into: part)
            } catch { throw Errno(error) }
        }
        return count
    }

    func duplicateForSending() throws(Errno) -> Int32? { nil }

    func downloadURL(with fields: Fields) throws(Errno) -> String? {
        guard let piece = listed.withLock({ $0.first }), piece.start == 0, piece.end == size else { return nil }
        do throws(ObjectError) {
            return try reader.downloadURL(of: piece, with: fields.map { ($0.name, $0.value) })
        } catch { throw Errno(error) }
    }

    /// Returns consecutive pieces, one of which contains the byte at `position`.
    private func pieces(from position: Int64) throws(Errno) -> [Piece] {
        func contains(_ pieces: [Piece]) -> Bool {
            guard let first = pieces.first else { return false }
            return first.start <= position && position < pieces.end
        }
        let known = listed.withLock { $0 }
        if contains(known) { return known }
        let next = try storage.list(storage.limits.pieces(of: blob, from: position))
        // The file may have been replaced or removed.
        guard contains(next) else { throw .inputOutput }
        listed.withLock { $0 = next }
        return next
    }
}
