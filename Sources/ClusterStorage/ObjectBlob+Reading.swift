import ObjectStorage
import SystemCalls
import UploadStorage

extension ObjectBlob {
    private enum Source {
        case copied(Int)
        case object(Piece, following: Piece?)
        case earlier(RecordedPieces)
        case end
        case failed(Errno)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try read(into: buffer, at: offset, until: .max)
    }

    /// - Parameter deadline: monotonic nanoseconds.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, until deadline: Int64
    ) throws(Errno) -> Int {
        var count = 0
        var missing: Piece?
        while count < buffer.count {
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let position = offset + Int64(count)
            switch state.withLock({ Self.copy(from: $0, at: position, to: part) }) {
            case .end: return count
            case .failed(let error): throw error
            case .copied(let copied): count += copied
            case .earlier(let pieces): count += try pieces.read(into: part, at: position)
            case .object(let piece, let following):
                do throws(ObjectError) {
                    count += try reader.read(piece, following: following, at: position, into: part, until: deadline)
                } catch {
                    // Another thread may have replaced the piece. Then its object was deleted.
                    guard error == .notFound, piece != missing else { throw Errno(error) }
                    missing = piece
                }
            }
        }
        return count
    }

    /// Copies bytes that are in memory.
    private static func copy(
        from state: State, at position: Int64, to buffer: UnsafeMutableRawBufferPointer
    ) -> Source {
        if let failure = state.failure { return .failed(failure) }
        let segments = (state.copy.map { [$0] } ?? []) + state.segments
        if let segment = segments.first(where: { $0.start <= position && position < $0.end }) {
            return .copied(buffer.copy(segment.bytes, from: Int(position - segment.start)))
        }
        if let earlier = state.earlier, position < earlier.size { return .earlier(earlier) }
        let index = state.pieces.index(containing: position)
        guard index < state.pieces.endIndex else { return .end }
        let piece = state.pieces[index]
        if case .inline(let bytes) = piece.storage {
            return .copied(buffer.copy(bytes, from: Int(position - piece.start)))
        }
        return .object(piece, following: index + 1 < state.pieces.endIndex ? state.pieces[index + 1] : nil)
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Copies the bytes from an offset on, as far as there is room.
    /// - Returns: their number.
    func copy(_ bytes: [UInt8], from offset: Int) -> Int {
        let part = bytes[offset...].prefix(count)
        copyBytes(from: part)
        return part.count
    }
}
