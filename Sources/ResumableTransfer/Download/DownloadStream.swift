import HTTPTransport
import Foundation
import HTTPSemantics
import Synchronization

/// The bytes of a download as a sequence of chunks, which is not stored on the disk.
///
/// The download starts with the first iteration. After an interruption it continues where it was interrupted, as every
/// download does. If the caller is slow, no more than 2 MiB are received ahead. The sequence can be iterated only once.
/// When its first iterator is released, or the task of the iteration is canceled, the download ends.
///
/// The iteration throws ``TransferError``. Its code is `sourceChanged` if bytes were delivered and the download cannot
/// continue after them, because the representation has changed or has no validator. It is `digestMismatch` after the
/// last byte if the bytes do not match `Repr-Digest`. It throws `CancellationError` if its task was canceled. Such a
/// download cannot be resumed later.
public struct DownloadStream: AsyncSequence, Sendable {
    private let transfer: StreamTransfer

    init(_ transfer: StreamTransfer) {
        self.transfer = transfer
    }

    /// Identifies the download in its log entries, its ``RequestMetrics`` and its ``TransferRecord``s.
    public var id: UUID { transfer.id }

    /// The request of the download.
    public var request: TransferRequest { transfer.request }

    /// The received bytes out of the total.
    public var progress: Progress { transfer.progress }

    /// The events of the download, until it ends. Reading them does not start it.
    public func events() -> AsyncStream<TransferEvent> { transfer.control.events.stream() }

    /// The times of the last fifty requests that have ended.
    public var metrics: [RequestMetrics] { transfer.metrics }

    /// Iterates over the chunks. Iterators after the first one throw ``TransferError`` with the code `invalidRequest`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(transfer.beginIteration() ? Reader(transfer) : nil)
    }

    /// An iteration over the chunks of a download.
    public struct Iterator: AsyncIteratorProtocol {
        /// The reader of the bytes; `nil` if another iterator has the bytes.
        private let reader: Reader?

        fileprivate init(_ reader: Reader?) {
            self.reader = reader
        }

        /// Waits for the next bytes.
        /// - Returns: at least one byte; `nil` after the last one.
        /// - Throws: ``TransferError`` or `CancellationError`.
        public mutating func next() async throws -> Data? {
            guard let reader else {
                throw TransferError(.invalidRequest, "The bytes of a download stream can be iterated only once.")
            }
            return try await reader.next()
        }
    }

    /// Ends the download when the iteration is released.
    fileprivate final class Reader: Sendable {
        private let transfer: StreamTransfer

        init(_ transfer: StreamTransfer) {
            self.transfer = transfer
        }

        deinit { transfer.stop() }

        func next() async throws -> Data? {
            transfer.start()
            do {
                let chunk = try await withTaskCancellationHandler {
                    try await transfer.plan.input.next()
                } onCancel: {
                    transfer.stop()
                }
                try Task.checkCancellation()
                return chunk
            } catch {
                try Task.checkCancellation()
                throw error
            }
        }
    }
}

/// A download to memory.
final class StreamTransfer: DrivenTransfer {
    let parts: TransferParts<StreamDownloadOperation>
    private let isIterated = Atomic(false)

    init(_ parts: TransferParts<StreamDownloadOperation>) { self.parts = parts }

    func value() async throws -> TransferResponse { try await cancellableOutcome() }

    /// Returns true for the first call only.
    func beginIteration() -> Bool { !isIterated.exchange(true, ordering: .relaxed) }

    /// Ends the download; its bytes are not needed any more.
    func stop() {
        plan.input.close()
        control.requestStop(.cancel(deleting: true))
    }
}

extension TransferClient {
    /// Prepares a download whose bytes are delivered as they arrive, and not stored.
    ///
    ///     for try await chunk in client.stream(TransferRequest("https://files.example/list.csv")) {
    ///         parser.parse(chunk)
    ///     }
    /// - Parameter request: a GET request without `Range` and `If-Range`.
    public func stream(_ request: TransferRequest) -> DownloadStream {
        DownloadStream(StreamTransfer(TransferParts(self, TransferPlan(request, ContentBuffer(.stream)))))
    }

    /// Downloads a representation to memory. The download continues after interruptions. It begins again if the
    /// representation has changed.
    /// - Parameters:
    ///   - request: a GET request without `Range` and `If-Range`.
    ///   - maxSize: the maximum number of bytes. No memory is allocated in advance.
    /// - Returns: all bytes of the representation, and the response with the last of them, without its content.
    /// - Throws: ``TransferError``, with the code `tooLarge` if there are more than `maxSize` bytes, and with
    ///   `digestMismatch` if they do not match `Repr-Digest`; `CancellationError` if the task was canceled.
    public func data(
        for request: TransferRequest, maxSize: Int
    ) async throws -> (data: Data, response: TransferResponse) {
        let buffer = ContentBuffer(.entire(maxSize: maxSize))
        let transfer = StreamTransfer(TransferParts(self, TransferPlan(request, buffer)))
        let response = try await transfer.value()
        return (try await buffer.next() ?? Data(), response)
    }
}
