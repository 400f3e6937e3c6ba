import HTTPTransport
import SystemCalls

/// The bytes of a sequence between its iteration and their acknowledgment, in a file without a name.
///
/// One task appends bytes. The engine's thread reads them, and waits at most for a write of `portion` bytes to the file.
final class SequenceBuffer: Sendable {
    /// The maximum number of bytes that are read ahead of the transfer.
    static let window: Int64 = 4 << 20
    /// The number of bytes whose space is freed in one step.
    private static let releasedPortion: Int64 = 1 << 20
    /// Single bytes are written to the file, and reported to a waiting reader, in portions of up to this size.
    private static let portion = 16 << 10
    /// The time after which a waiting reader gets a smaller portion.
    private static let portionDelay = Duration.milliseconds(5)

    private enum Ending {
        case complete
        case failed(any Error)
    }

    private struct State {
        var file: FileDescriptor?
        /// The number of bytes of the sequence so far.
        var end: Int64 = 0
        /// The last bytes before `end`, which are not in the file yet.
        var pending: [UInt8] = []
        /// Bytes below this offset are not read again.
        var released: Int64 = 0
        /// The offset below which the space of the file was freed.
        var freed: Int64 = 0
        /// The highest offset at which the reader has requested bytes.
        var requested: Int64 = 0
        var ending: Ending?
        /// The reader that waits for a byte.
        var reader: (offset: Int64, wake: @Sendable () -> Void)?
        var isReaderDelayed = false
        var writer: CheckedContinuation<Void, Never>?

        var hasRoom: Bool { ending != nil || end - max(requested, released) < SequenceBuffer.window }

        /// Removes and returns the closure of the reader if its byte exists or the sequence has ended.
        mutating func removeReadyReader() -> (@Sendable () -> Void)? {
            guard let reader, ending != nil || reader.offset < end else { return nil }
            self.reader = nil
            return reader.wake
        }

        mutating func removeReadyWriter() -> CheckedContinuation<Void, Never>? {
            guard hasRoom else { return nil }
            defer { writer = nil }
            return writer
        }

        mutating func flush() throws(Errno) {
            guard let file, !pending.isEmpty else { return }
            try file.write(pending, at: end - Int64(pending.count))
            pending.removeAll(keepingCapacity: true)
        }
    }

    private let directory: FilePath
    private let state = Monitor(State())

    /// - Parameter directory: the directory of the file.
    init(_ directory: FilePath) {
        self.directory = directory
    }

    /// The number of bytes; `nil` until the sequence has ended.
    var length: Int64? {
        state.withLock { state in
            if case .complete = state.ending { state.end } else { nil }
        }
    }

    /// The error of the sequence or of the file.
    var failure: (any Error)? {
        state.withLock { state in
            if case .failed(let error) = state.ending { error } else { nil }
        }
    }

    // MARK: For the iteration

    /// Appends the next bytes.
    /// - Returns: whether there is room for more.
    /// - Throws: an error of the file; `CancellationError` if no more bytes are needed.
    func append(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
        let (file, end, released) = try state.withLock { state in
            let file = try openFile(&state)
            try state.flush()
            return (file, state.end, state.released)
        }
        // Bytes that the server already has need no space. The lock is not held, so that the reader does not wait.
        if end + Int64(bytes.count) > released { try file.write(bytes, at: end) }
        let (wake, hasRoom) = state.withLock { state in
            state.end = end + Int64(bytes.count)
            return (state.removeReadyReader(), state.hasRoom)
        }
        wake?()
        return hasRoom
    }

    /// Appends one byte. A sequence uses either this method or the one for several bytes.
    /// - Returns: whether there is room for more.
    /// - Throws: an error of the file; `CancellationError` if no more bytes are needed.
    func append(_ byte: UInt8) throws -> Bool {
        let (wake, isDelayed, hasRoom) = try state.withLock { state in
            _ = try openFile(&state)
            state.pending.append(byte)
            state.end += 1
            let isFull = state.pending.count >= Self.portion
            if isFull { try state.flush() }
            guard !isFull, let reader = state.reader, reader.offset < state.end else {
                return (isFull ? state.removeReadyReader() : nil, false, state.hasRoom)
            }
            defer { state.isReaderDelayed = true }
            return (nil, !state.isReaderDelayed, state.hasRoom)
        }
        wake?()
        if isDelayed { wakeReaderLater() }
        return hasRoom
    }

    /// Wakes the reader after a short time, because the sequence may pause after a few bytes, which are then sent.
    private func wakeReaderLater() {
        Task { [weak self] in
            try? await Task.sleep(for: Self.portionDelay)
            let wake = self?.state.withLock { state in
                state.isReaderDelayed = false
                return state.removeReadyReader()
            }
            wake?()
        }
    }

    private func openFile(_ state: inout State) throws -> FileDescriptor {
        if state.ending != nil { throw CancellationError() }
        if let file = state.file { return file }
        let file = try TransferStorage(path: directory).makeNamelessFile()
        state.file = file
        return file
    }

    /// Waits until the reader needs more bytes, or until the sequence has ended.
    func awaitRoom() async {
        await withCheckedContinuation { continuation in
            let hasRoom = state.withLock { state in
                if !state.hasRoom { state.writer = continuation }
                return state.hasRoom
            }
            if hasRoom { continuation.resume() }
        }
    }

    /// Notes the end of the sequence.
    /// - Parameter error: its error, or that of ``append(_:)``.
    func end(_ error: (any Error)? = nil) {
        let (wake, writer) = state.withLock { state in
            if state.ending == nil { state.ending = error.map { .failed($0) } ?? .complete }
            return (state.removeReadyReader(), state.removeReadyWriter())
        }
        wake?()
        writer?.resume()
    }

    // MARK: For the upload

    /// - Returns: the number of bytes; `nil` if the byte at `offset` does not exist yet.
    func read(
        into bytes: UnsafeMutableRawBufferPointer, at offset: Int64, orCall wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> Int? {
        let (readable, writer) = try state.withLock { state throws(SourceError) in
            let readable = try prepare(&state, bytes.count, at: offset, wake)
            return (readable, state.removeReadyWriter())
        }
        writer?.resume()
        guard let (file, count) = readable else { return nil }
        do throws(Errno) {
            return try file?.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<count]), at: offset) ?? 0
        } catch {
            throw .system(error)
        }
    }

    /// - Returns: the file and the number of bytes to read; `nil` if the reader has to wait.
    private func prepare(
        _ state: inout State, _ count: Int, at offset: Int64, _ wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> (FileDescriptor?, Int)? {
        guard offset >= state.released else { throw .unavailable(at: offset) }
        state.requested = max(state.requested, offset)
        guard offset < state.end else {
            switch state.ending {
            case .complete?:
                guard offset == state.end else { throw .unavailable(at: offset) }
                return (nil, 0)
            case .failed?: throw .unavailable(at: offset)
            case nil:
                state.reader = (offset, wake)
                return nil
            }
        }
        let end = min(offset + Int64(count), state.end)
        do throws(Errno) {
            if end > state.end - Int64(state.pending.count) { try state.flush() }
        } catch {
            throw .system(error)
        }
        guard let file = state.file else { throw .unavailable(at: offset) }
        return (file, Int(end - offset))
    }

    func isReadable(at offset: Int64, orCall wake: @escaping @Sendable () -> Void) -> Bool {
        let (isReadable, writer) = state.withLock { state in
            state.requested = max(state.requested, offset)
            let isReadable = state.ending != nil || offset < state.end
            if !isReadable { state.reader = (offset, wake) }
            return (isReadable, state.removeReadyWriter())
        }
        writer?.resume()
        return isReadable
    }

    /// Frees the space of the bytes below `offset`, which are not read again.
    func release(upTo offset: Int64) {
        let (file, range, writer) = state.withLock { state in
            state.released = max(state.released, offset)
            let stored = min(state.released, state.end - Int64(state.pending.count))
            let range = state.freed..<max(state.freed, stored / Self.releasedPortion * Self.releasedPortion)
            state.freed = range.upperBound
            return (state.file, range, state.removeReadyWriter())
        }
        writer?.resume()
        guard !range.isEmpty else { return }
        // Not every file system can free a part of a file.
        try? file?.punchHole(at: range.lowerBound, count: Int64(range.count))
    }

    /// Frees the file. The iteration ends.
    func close() {
        end(CancellationError())
        state.withLock { state in
            state.file = nil
            state.pending = []
        }
    }
}

extension TransferStorage {
    /// Creates an empty file without a name, which the system removes when it is closed.
    /// - Throws: `storageUnusable`.
    func makeNamelessFile() throws(TransferError) -> FileDescriptor {
        let directory = try open()
        do throws(Errno) {
            if let file = try? directory.open(at: ".", [.readWrite, .nameless]) { return file }
            // Not every file system has files without a name.
            let name = PartialFileName.make(for: nil)
            let file = try directory.open(at: name, [.readWrite, .create, .exclusive, .noFollow])
            try directory.unlink(at: name)
            return file
        } catch {
            throw TransferError(.storageUnusable, "A file cannot be created in \(path).", underlying: error)
        }
    }
}
