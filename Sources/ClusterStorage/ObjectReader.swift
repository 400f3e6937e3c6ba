import ObjectStorage
import Synchronization
import SystemCalls

/// Reads pieces from the object storage. While bytes are read one after the other, the bytes that follow are read in
/// advance, as far as the memory for buffers allows.
final class ObjectReader: Sendable {
    /// A part of an object that is in memory, or is being read into memory.
    private final class Window: Sendable {
        let key: String
        /// The offset of the first byte in the object.
        let start: Int
        let count: Int
        private let storage: PieceStorage
        private let isBegun = Atomic(false)
        private let result = Monitor<Result<[UInt8], ObjectError>?>(nil)

        init?(_ key: String, at start: Int, count: Int, _ storage: PieceStorage) {
            guard storage.budget.reserve(count, for: .window) else { return nil }
            (self.key, self.start, self.count) = (key, start, count)
            self.storage = storage
        }

        deinit { storage.budget.release(count, from: .window) }

        var end: Int { start + count }

        func contains(_ key: String, _ offset: Int) -> Bool {
            start <= offset && offset < end && key == self.key
        }

        /// Reads the bytes from the storage, unless another thread has begun to read them.
        func fetch() {
            if isBegun.exchange(true, ordering: .relaxed) { return }
            var failure: ObjectError?
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                do throws(ObjectError) {
                    try storage.get(key, at: start, into: UnsafeMutableRawBufferPointer(buffer))
                    initialized = count
                } catch { failure = error }
            }
            result.withLock { $0 = failure.map { .failure($0) } ?? .success(bytes) }
            result.notifyAll()
        }

        /// Whether the bytes could not be read.
        var hasFailed: Bool { result.withLock { if case .failure = $0 { true } else { false } } }

        /// Waits for the bytes, and copies those from `offset` on.
        func copy(
            from offset: Int, to buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
        ) throws(ObjectError) -> Int {
            guard let bytes = try result.wait(until: deadline, { $0 })?.get() else {
                throw .unavailable("the time limit has passed")
            }
            let part = bytes[(offset - start)...].prefix(buffer.count)
            buffer.copyBytes(from: part)
            return part.count
        }
    }

    private struct State {
        var current: Window?
        var next: Window?
        /// The offset in the blob after the bytes that were read last.
        var position: Int64 = 0
        /// The size of the last window.
        var size = 0
    }

    private static let minWindow = 256 << 10
    private static let maxWindow = 2 << 20

    private let storage: PieceStorage
    private let state = Monitor(State())

    init(_ storage: PieceStorage) { self.storage = storage }

    /// A URL with which everyone can read a piece for a minute; `nil` if the piece is not a complete object.
    func downloadURL(of piece: Piece, with fields: [(name: String, value: String)]) throws(ObjectError) -> String? {
        guard let key = piece.object else { return nil }
        // A piece can be the beginning of an object.
        let end = Int64(piece.size)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
        defer { buffer.deallocate() }
        guard try storage.objects.get(key, end - 1..<end + 1, into: buffer) == 1 else { return nil }
        return try storage.objects.presignedURL(key, validFor: .seconds(60), responseFields: fields)
    }

    /// Reads bytes of a piece, which is an object.
    /// - Parameters:
    ///   - following: the next piece of the blob.
    ///   - position: the offset in the blob.
    ///   - deadline: monotonic nanoseconds.
    /// - Returns: the number of bytes, at least 1.
    func read(
        _ piece: Piece, following: Piece?, at position: Int64, into buffer: UnsafeMutableRawBufferPointer,
        until deadline: Int64 = .max
    ) throws(ObjectError) -> Int {
        guard let key = piece.object else { return 0 }
        let offset = Int(position - piece.start)
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(piece.size - offset))
        let window = state.withLock { state in
            defer { state.position = position + Int64(part.count) }
            return findWindow(key, offset, of: piece, at: position, reading: part.count, &state)
        }
        guard let window else {
            try storage.get(key, at: offset, into: part, until: deadline)
            return part.count
        }
        // Reading in advance may have failed long ago.
        let mustRepeat = window.hasFailed
        // The window may wait for a thread that reads in advance, and all of them may wait for the storage.
        window.fetch()
        readAhead(after: window, in: piece, following)
        do throws(ObjectError) {
            let count = try window.copy(from: offset, to: part, until: deadline)
            if count < part.count { state.withLock { $0.position = position + Int64(count) } }
            return count
        } catch {
            state.withLock { state in if state.current === window { state.current = nil } }
            guard mustRepeat else { throw error }
            try storage.get(key, at: offset, into: part, until: deadline)
            return part.count
        }
    }

    /// - Returns: the window with the byte at the offset; `nil` if the bytes are read without a window.
    private func findWindow(
        _ key: String, _ offset: Int, of piece: Piece, at position: Int64, reading count: Int, _ state: inout State
    ) -> Window? {
        if let window = state.current, window.contains(key, offset) { return window }
        if let window = state.next, window.contains(key, offset) {
            (state.current, state.next) = (window, nil)
            return window
        }
        (state.current, state.next) = (nil, nil)
        let isSequential = position > 0 && position == state.position
        state.size = isSequential ? min(max(2 * state.size, Self.minWindow), Self.maxWindow) : 0
        let size = min(state.size, piece.size - offset)
        guard size > count else { return nil }
        state.current = Window(key, at: offset, count: size, storage)
        return state.current
    }

    private func readAhead(after window: Window, in piece: Piece, _ following: Piece?) {
        let next = state.withLock { state -> Window? in
            guard state.current === window, state.next == nil else { return nil }
            let (target, start) = window.end < piece.size ? (piece, window.end) : (following, 0)
            guard let target, let key = target.object else { return nil }
            state.size = min(2 * state.size, Self.maxWindow)
            let size = min(state.size, target.size - start)
            state.next = size > 0 ? Window(key, at: start, count: size, storage) : nil
            return state.next
        }
        // If no thread begins in time, the reader of the window fetches it, and releases its memory.
        if let next { _ = storage.readAhead { [weak next] in next?.fetch() } }
    }
}
