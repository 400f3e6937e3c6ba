import HTTPTransport
import SystemCalls

/// Bytes on their way between the thread of a connection, which may block, and the thread of libcurl, which may not.
final class ContentPipe: GrowingSource, BodySink {
    /// The number of bytes from which on the writer waits.
    fileprivate static let capacity = 256 << 10

    private struct State {
        var bytes: [UInt8] = []
        /// The number of bytes at the beginning of `bytes` that were read.
        var consumed = 0
        var isEnded = false
        var isClosed = false
        /// The number of bytes that were read.
        var position: Int64 = 0
        var wakeReader: (@Sendable () -> Void)?
        var wakeWriter: (@Sendable () -> Void)?

        var count: Int { bytes.count - consumed }

        mutating func add(_ new: UnsafeRawBufferPointer) {
            // A reader that never reaches the end must not make the array longer and longer.
            if consumed >= ContentPipe.capacity {
                bytes.removeFirst(consumed)
                consumed = 0
            }
            bytes += new
        }

        mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            let part = min(buffer.count, count)
            bytes.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[consumed..<consumed + part]))
            }
            consumed += part
            position += Int64(part)
            if consumed == bytes.count {
                bytes.removeAll(keepingCapacity: true)
                consumed = 0
            }
            return part
        }
    }

    let length: Int64?
    private let state = Monitor(State())

    /// - Parameter length: the number of all bytes; `nil` if it is unknown.
    init(length: Int64?) { self.length = length }

    /// Whether the writer has to wait.
    var isFull: Bool { state.withLock { $0.count >= Self.capacity && !$0.isClosed } }

    /// No more bytes follow.
    func end() {
        let wake = state.withLock { state in
            state.isEnded = true
            defer { state.wakeReader = nil }
            return state.wakeReader
        }
        state.notifyAll()
        wake?()
    }

    /// The bytes are not needed any more: from now on writes are ignored.
    func discard() {
        let wake = state.withLock { state in
            (state.isClosed, state.bytes, state.consumed) = (true, [], 0)
            defer { state.wakeWriter = nil }
            return state.wakeWriter
        }
        state.notifyAll()
        wake?()
    }

    // MARK: The thread of a connection

    /// Appends bytes without waiting.
    func append(_ bytes: UnsafeRawBufferPointer) {
        let wake = state.withLock { state in
            if !state.isClosed { state.add(bytes) }
            defer { state.wakeReader = nil }
            return state.wakeReader
        }
        state.notifyAll()
        wake?()
    }

    /// Waits until the pipe has room.
    /// - Parameter deadline: the end of the wait, in monotonic nanoseconds.
    func awaitRoom(until deadline: Int64) -> Bool {
        state.wait(until: deadline) { $0.count < Self.capacity || $0.isClosed ? true : nil } ?? false
    }

    /// Reads bytes, and waits for at least one.
    /// - Returns: `nil` if no byte has arrived before the deadline; 0 at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64) -> Int? {
        let result: (count: Int, wake: (@Sendable () -> Void)?)? = state.wait(until: deadline) { state in
            if state.count == 0 { return state.isEnded ? (0, nil) : nil }
            let count = state.take(into: buffer)
            guard state.count < Self.capacity else { return (count, nil) }
            defer { state.wakeWriter = nil }
            return (count, state.wakeWriter)
        }
        result?.wake?()
        return result?.count
    }

    /// All bytes that have arrived and were not read.
    func takeAll() -> [UInt8] {
        let (bytes, wake) = state.withLock { state in
            defer { (state.bytes, state.consumed, state.wakeWriter) = ([], 0, nil) }
            return (Array(state.bytes[state.consumed...]), state.wakeWriter)
        }
        wake?()
        return bytes
    }

    // MARK: The thread of libcurl

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        try read(into: buffer, at: offset, orCall: {}) ?? 0
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, orCall wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> Int? {
        let count: Int?? = state.withLock { state in
            guard state.position == offset else { return .some(nil) }
            if state.count > 0 { return .some(.some(state.take(into: buffer))) }
            if state.isEnded { return .some(.some(0)) }
            state.wakeReader = wake
            return .none
        }
        state.notifyAll()
        guard let count else { return nil }
        guard let count else { throw .unavailable(at: offset) }
        return count
    }

    func isReadable(at offset: Int64, orCall wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if state.count > 0 || state.isEnded { return true }
            state.wakeReader = wake
            return false
        }
    }

    var failure: (any Error)? { nil }
    func acknowledged(upTo offset: Int64) {}
    func close() {}

    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) { append(bytes) }

    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if state.count < Self.capacity || state.isClosed { return true }
            state.wakeWriter = wake
            return false
        }
    }
}
