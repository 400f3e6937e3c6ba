import HTTPTransport
import Foundation
import SystemCalls

/// The bytes of a download in memory, between the engine's thread and the caller.
final class ContentBuffer: BodySink {
    enum Kind: Sendable, Hashable {
        /// The caller reads bytes while others arrive. If the caller does not read, no more bytes are received.
        case stream
        /// The caller gets all bytes at the end.
        case entire(maxSize: Int)
    }

    /// The number of waiting bytes at which a stream stops receiving. One write of libcurl can exceed it.
    static let window = 1 << 20

    private struct State {
        var content = Data()
        /// The number of bytes of the representation that were received, from its beginning.
        var position: Int64 = 0
        /// The number of these bytes that the caller has.
        var delivered: Int64 = 0
        /// The offset of the next byte of the current response. If it is less than `position`, the response repeats
        /// bytes that were received before.
        var cursor: Int64 = 0
        /// The offset at which the current response has to end; `nil` if it is unknown.
        var end: Int64?
        var digests: ExpectedDigests?
        var failure: Failure?
        /// Resumes the transport, which waits until the caller has read bytes.
        var wake: (@Sendable () -> Void)?
        var reader: CheckedContinuation<Void, Never>?
        /// The result of the download; `nil` while it runs.
        var ending: Result<Void, TransferError>?
        var isClosed = false
    }

    enum Failure: Sendable, Hashable {
        /// There are more bytes than the caller accepts.
        case tooLarge
        /// The server sends other content, or content without a validator, after the caller has received bytes.
        case hasChanged
        /// The response is longer than its head stated.
        case overrun
    }

    let kind: Kind
    private let state = Monitor(State())

    init(_ kind: Kind) {
        self.kind = kind
    }

    var position: Int64 { state.withLock { $0.position } }
    var failure: Failure? { state.withLock { $0.failure } }
    /// Whether the last response has reached `position`. Otherwise it ended among the bytes that it repeated.
    var isCaughtUp: Bool { state.withLock { $0.cursor >= $0.position } }
    /// Whether the bytes have the digests that the server sent; true if it sent none.
    var hasExpectedDigests: Bool { state.withLock { $0.digests?.isMatched ?? true } }

    // MARK: For the transport

    /// Prepares to receive content that continues the bytes, or that contains bytes which were received before.
    /// - Parameters:
    ///   - start: the offset of its first byte.
    ///   - end: the offset at which it has to end; `nil` if it is unknown.
    ///   - total: the length of the representation.
    /// - Returns: whether to receive it.
    func begin(at start: Int64, end: Int64?, total: Int64?) -> Bool {
        state.withLock { state in
            if case .entire(let size) = kind, let total, total > Int64(size) { state.failure = .tooLarge }
            state.cursor = start
            state.end = end
            return state.failure == nil && start <= state.position
        }
    }

    /// Prepares to receive a representation from its beginning.
    /// - Returns: whether to receive it; false if the caller has already received bytes of another representation.
    func replace(total: Int64?, digests: ExpectedDigests?) -> Bool {
        let isPossible = state.withLock { state in
            guard state.delivered == 0 else {
                state.failure = .hasChanged
                return false
            }
            state.content = Data()
            state.position = 0
            state.digests = digests
            return true
        }
        return isPossible && begin(at: 0, end: nil, total: total)
    }

    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if kind != .stream || state.isClosed || state.content.count < Self.window { return true }
            state.wake = wake
            return false
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let reader = try state.withLock { state throws(Errno) in
            if state.isClosed { throw Errno.brokenPipe }
            if let end = state.end, Int64(bytes.count) > end - state.cursor { state.failure = .overrun }
            let known = Int(min(state.position - state.cursor, Int64(bytes.count)))
            let new = UnsafeRawBufferPointer(rebasing: bytes[known...])
            if case .entire(let size) = kind, new.count > size - state.content.count { state.failure = .tooLarge }
            if state.failure != nil { throw Errno.fileTooLarge }
            state.content.append(contentsOf: new)
            state.digests?.update(new)
            state.cursor += Int64(bytes.count)
            state.position += Int64(new.count)
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    // MARK: For the caller

    /// Returns the bytes that have arrived, and waits for the first of them; `nil` after the end.
    func next() async throws(TransferError) -> Data? {
        while true {
            let (content, ending, wake) = state.withLock { state in
                let content = state.content
                state.content = Data()
                state.delivered += Int64(content.count)
                defer { state.wake = nil }
                return (content, state.ending, state.wake)
            }
            wake?()
            if !content.isEmpty { return content }
            if let ending {
                try ending.get()
                return nil
            }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    let isReady = !state.content.isEmpty || state.ending != nil
                    if !isReady { state.reader = continuation }
                    return isReady
                }
                if isReady { continuation.resume() }
            }
        }
    }

    /// Ends the download. The caller still receives the bytes that have arrived.
    /// - Parameter ending: the result of the download.
    func end(_ ending: Result<Void, TransferError>) {
        let reader = state.withLock { state in
            if state.ending == nil { state.ending = ending }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// Drops all bytes, because the caller reads no more.
    func close() {
        let wake = state.withLock { state in
            state.isClosed = true
            state.content = Data()
            defer { state.wake = nil }
            return state.wake
        }
        wake?()
    }
}
