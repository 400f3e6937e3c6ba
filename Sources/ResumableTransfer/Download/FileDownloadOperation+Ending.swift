import HTTPTransport
import Digests
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension FileDownloadOperation {
    /// Checks the digest after all bytes were received, and gives the file its final name.
    func finish(_ head: ClientResponseHead) async throws(TransferError) -> DownloadResult {
        guard let files, let size = machine.representation?.total else {
            throw TransferError(.internalFailure, "A download was complete, but its file or its length is missing.")
        }
        files.setRepresentation(machine.representation)
        let partial = files.current
        try await checkDigest(of: partial, size: size)
        try await keepFinalCheckpoint(of: partial)
        let destination = driver.plan.input
        let path = try await BlockingWork.run {
            Result { () throws(TransferError) in
                do throws(Errno) {
                    let path = try partial.publish()
                    files.removeEarlier()
                    return path
                } catch {
                    throw FileDownloadOperation.destinationError(error, of: destination)
                }
            }
        }.get()
        reportProgress()
        driver.progress.finish()
        return DownloadResult(
            status: head.status, fields: head.fields, contentCoding: machine.representation?.storedCoding, file: path,
            size: size, received: received, requests: driver.requests)
    }

    /// Makes the complete partial file durable and passes its checkpoint to the caller. This happens before the file is
    /// renamed, so that a later process can recognize it under its final name (``PartialFile/isPublished(_:in:)``).
    private func keepFinalCheckpoint(of partial: PartialFile) async throws(TransferError) {
        if let failure = await BlockingWork.run({ partial.synchronize() }) {
            throw FileDownloadOperation.destinationError(failure, of: driver.plan.input)
        }
        await driver.keepCheckpoint(isDue: true)
    }

    /// The result of a download whose file got its final name in an earlier run.
    func finish(published path: FilePath, size: Int64) -> DownloadResult {
        driver.progress.update(completed: size, total: size)
        driver.progress.finish()
        driver.control.events.send(.received(size, total: size))
        return DownloadResult(
            status: .ok, fields: Fields(),
            contentCoding: driver.plan.resumed.map { DownloadRepresentation($0) }?.storedCoding,
            file: path, size: size, received: 0, requests: 0)
    }

    private func checkDigest(of partial: PartialFile, size: Int64) async throws(TransferError) {
        let expected = ExpectedDigests(of: files?.representation, and: driver.plan.request)
        guard !expected.isEmpty else { return }
        let flag = StopFlag()
        let result = await driver.control.interruptible(
            by: { flag.raise() },
            while: {
                await BlockingWork.run {
                    Result { () throws(Errno) in try partial.matches(expected, size: size, until: flag) }
                }
            })
        switch result {
        case .success(true?): return
        case .success(false?):
            throw TransferError(.digestMismatch, "The received bytes do not match their digest.")
        case .success(nil): throw stopped(by: driver.control.stop ?? .pause)
        case .failure(let failure): throw FileDownloadOperation.destinationError(failure, of: driver.plan.input)
        }
    }

    func conclude(_ error: TransferError) async -> TransferConclusion<DownloadCheckpoint> {
        guard let files else { return concludeUnopened(error) }
        var isKept = driver.control.stop != .cancel(deleting: true)
        if error.code == .digestMismatch {
            // The new bytes do not match their digest, but the earlier bytes may match theirs.
            if files.earlier == nil { isKept = false } else { files.returnToEarlier() }
        }
        if isKept { await BlockingWork.run { files.synchronize() } }
        guard isKept, let checkpoint else {
            files.remove()
            return .over
        }
        return error.code == .cancelled ? .over : .resumable(checkpoint)
    }

    /// Decides what is kept after an error that occurred before the partial file was opened.
    private func concludeUnopened(_ error: TransferError) -> TransferConclusion<DownloadCheckpoint> {
        switch error.code {
        case .cancelled: .over
        case .resumeDataUsed: .nothing
        default: driver.plan.resumed.map { .resumable($0) } ?? .nothing
        }
    }
}

extension PartialFile {
    /// Whether the first `size` bytes have the expected digests; `nil` if `flag` was raised.
    fileprivate func matches(_ expected: ExpectedDigests, size: Int64, until flag: StopFlag) throws(Errno) -> Bool? {
        var digests = expected
        let isRead = try flag.readAll(size) { buffer, offset throws(Errno) in
            let count = try read(into: buffer, at: offset)
            guard count > 0 else { throw .inputOutput }
            return count
        } body: {
            digests.update($0)
        }
        return isRead ? digests.isMatched : nil
    }
}

/// Expected digests, and those of the bytes that were received.
struct ExpectedDigests: Sendable {
    private let expected: [(algorithm: DigestAlgorithm, bytes: [UInt8])]
    private var running: [DigestAlgorithm: RunningDigest]

    /// - Parameter expected: the digests of the complete representation. Several digests may have the same algorithm.
    ///   Digests of unknown algorithms are ignored.
    init(_ expected: [(algorithm: DigestAlgorithm, bytes: [UInt8])]) {
        running = [:]
        for (algorithm, _) in expected {
            running[algorithm] = Algorithm(rawValue: algorithm.rawValue).map { RunningDigest($0) }
        }
        self.expected = expected.filter { [running] in running[$0.algorithm] != nil }
    }

    /// The digests that the server sent, and those that the caller passed.
    init(of representation: DownloadRepresentation?, and request: TransferRequest) {
        let sent = representation?.digest.flatMap { DigestField(fieldLines: [$0]) }
        self.init((sent?.values ?? []) + (request.digestField?.values ?? []))
    }

    var isEmpty: Bool { expected.isEmpty }

    /// Adds the next bytes of the representation.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        for algorithm in running.keys { running[algorithm]?.update(bytes) }
    }

    /// Whether the bytes that were added have all expected digests.
    var isMatched: Bool {
        let found = running.mapValues { $0.finalized() }
        return expected.allSatisfy { found[$0.algorithm] == $0.bytes }
    }
}
