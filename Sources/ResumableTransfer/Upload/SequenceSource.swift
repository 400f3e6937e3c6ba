import HTTPTransport
import Foundation
import SystemCalls

/// The bytes of an asynchronous sequence, whose number need not be known.
///
/// The sequence is iterated once, from the first read on, and at most 4 MiB (and one chunk) ahead of the bytes that are
/// sent. Bytes that the server has not acknowledged are in a file without a name, so that they can be sent again; their
/// space is freed in steps of a MiB. A server that acknowledges nothing before the end needs the space of all bytes.
///
/// Keep the source to resume its upload after a pause in the same process. A later process can resume the upload with
/// a new source of the same bytes from the beginning; the bytes that the server has are not stored again.
public final class SequenceSource: UploadSource {
    private let buffer: SequenceBuffer
    private let iterate: @Sendable (SequenceBuffer) async throws -> Void
    private let reader = Monitor<Task<Void, Never>?>(nil)

    /// A source of the bytes of a sequence.
    /// - Parameters:
    ///   - bytes: iterated once.
    ///   - directory: the absolute path of the directory of the file, created with mode 0700 when it is first needed.
    ///     It must belong to the user and be writable by no other user.
    public init<Bytes: AsyncSequence & Sendable>(
        _ bytes: Bytes, directory: String = TransferClient.Configuration.defaultStorageDirectory
    ) where Bytes.Element == UInt8 {
        buffer = SequenceBuffer(FilePath(directory))
        iterate = { buffer in
            for try await byte in bytes {
                if try !buffer.append(byte) { await buffer.awaitRoom() }
            }
        }
    }

    /// A source of the bytes of a sequence of chunks.
    /// - Parameters:
    ///   - chunks: chunks of any size, iterated once.
    ///   - directory: the absolute path of the directory of the file, created with mode 0700 when it is first needed.
    ///     It must belong to the user and be writable by no other user.
    public init<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, directory: String = TransferClient.Configuration.defaultStorageDirectory
    ) where Chunks.Element: Collection<UInt8> {
        buffer = SequenceBuffer(FilePath(directory))
        iterate = { buffer in
            for try await chunk in chunks {
                let isRoomLeft =
                    try chunk.withContiguousStorageIfAvailable { try buffer.append(UnsafeRawBufferPointer($0)) }
                    ?? Array(chunk).withUnsafeBytes { try buffer.append($0) }
                if !isRoomLeft { await buffer.awaitRoom() }
            }
        }
    }

    deinit { close() }

    /// The number of bytes; `nil` until the sequence has ended.
    public var length: Int64? { buffer.length }

    /// Reads bytes, and waits for them on the caller's thread.
    /// - Throws: `unavailable` for bytes that were acknowledged, and after an error of the sequence; `system` if the
    ///   file cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        while true {
            let isReadable = Monitor(false)
            let count = try read(into: buffer, at: offset) {
                isReadable.withLock { $0 = true }
                isReadable.notifyAll()
            }
            if let count { return count }
            isReadable.waitForever { $0 ? () : nil }
        }
    }

    /// Frees the space of the bytes below `offset`.
    public func acknowledged(upTo offset: Int64) { buffer.release(upTo: offset) }

    /// Iterates the sequence, unless that was begun.
    private func begin() {
        reader.withLock { [buffer, iterate] reader in
            guard reader == nil else { return }
            reader = Task {
                do {
                    try await iterate(buffer)
                    buffer.end()
                } catch {
                    buffer.end(error)
                }
            }
        }
    }
}

extension SequenceSource: GrowingSource {
    package func read(
        into bytes: UnsafeMutableRawBufferPointer, at offset: Int64, orCall wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> Int? {
        begin()
        return try buffer.read(into: bytes, at: offset, orCall: wake)
    }

    package func isReadable(at offset: Int64, orCall wake: @escaping @Sendable () -> Void) -> Bool {
        begin()
        return buffer.isReadable(at: offset, orCall: wake)
    }

    package var failure: (any Error)? { buffer.failure }

    /// Ends the iteration.
    package func close() {
        buffer.close()
        reader.withLock { $0?.cancel() }
    }
}
