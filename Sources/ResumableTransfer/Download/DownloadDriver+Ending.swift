import Digests
import Foundation
import HTTPSemantics
import SystemCalls

extension DownloadDriver {
    /// Everything is there: the digest is checked, and the file gets its name.
    func finish(_ head: DownloadResponseHead) async throws(TransferError) -> DownloadResult {
        guard let files, let size = machine.representation?.total else {
            throw TransferError(.internalFailure, "A download ended without its file.")
        }
        files.note(machine.representation)
        let partial = files.current
        try await checkDigest(of: partial, size: size)
        try await keepWhole(partial)
        let path = try await BlockingWork.run {
            Result { () throws(TransferError) in
                do throws(Errno) {
                    let path = try partial.publish()
                    files.removeEarlier()
                    return path
                } catch {
                    throw DownloadDriver.destinationError(error)
                }
            }
        }.get()
        tellProgress()
        progress.finish()
        return DownloadResult(
            status: head.status, fields: head.fields, contentCoding: machine.representation?.storedCoding, file: path,
            size: size, received: received, requests: requests)
    }

    /// Lets a later process know that all is there, before the partial file is gone: it finds the file under its name
    /// then (``PartialFile/isPublished(_:in:)``).
    private func keepWhole(_ partial: PartialFile) async throws(TransferError) {
        if let failure = await BlockingWork.run({ partial.synchronize() }) {
            throw DownloadDriver.destinationError(failure)
        }
        await keepCheckpoint(isDue: true)
    }

    /// An earlier run has done everything but tell.
    func finish(published path: FilePath, size: Int64) -> DownloadResult {
        progress.update(completed: size, total: size)
        progress.finish()
        control.events.send(.received(size, total: size))
        return DownloadResult(
            status: .ok, fields: Fields(), contentCoding: plan.resumed.map { DownloadRepresentation($0) }?.storedCoding,
            file: path, size: size, received: 0, requests: 0)
    }

    private func checkDigest(of partial: PartialFile, size: Int64) async throws(TransferError) {
        guard let text = files?.representation?.digest, let told = DigestField(fieldLines: [text]) else { return }
        let flag = StopFlag()
        let result = await control.interruptible(
            by: { flag.raise() },
            while: {
                await BlockingWork.run {
                    Result { () throws(Errno) in try partial.matches(told, size: size, until: flag) }
                }
            })
        switch result {
        case .success(true?): return
        case .success(false?):
            throw TransferError(.digestMismatch, "The bytes that came are not those of the server's digest.")
        case .success(nil): throw error(of: control.stop ?? .pause)
        case .failure(let failure): throw DownloadDriver.destinationError(failure)
        }
    }

    /// The error with data to resume with, where there is something to resume; else the partial files are removed.
    func concluding(_ error: TransferError) async -> TransferError {
        var error = error
        guard let files else { return withUntouchedData(error) }
        var isWanted = control.stop != .cancel(deleting: true)
        if error.code == .digestMismatch {
            // The replacement is wrong; what it was to replace need not be.
            if files.earlier == nil { isWanted = false } else { files.goBack() }
        }
        if isWanted { await BlockingWork.run { files.synchronize() } }
        guard isWanted, let record = downloadRecord() else {
            files.remove()
            claim?.remove()
            control.keep(nil, isNews: false)
            return error
        }
        if error.code == .cancelled {
            claim?.remove()
            control.keep(nil, isNews: false)
        } else {
            error.resumeData = issue(record)
        }
        return error
    }

    /// After an error that came before the partial file was opened.
    private func withUntouchedData(_ error: TransferError) -> TransferError {
        var error = error
        let isForgotten = error.code == .cancelled || error.code == .resumeDataUsed
        if isForgotten { control.keep(nil, isNews: false) }
        if error.code == .cancelled { claim?.remove() }
        if !isForgotten, let resumed = plan.resumed { error.resumeData = issue(resumed) }
        return error
    }

    private func issue(_ record: DownloadRecord) -> ResumeData? {
        let ticket = core.issueTicket(for: plan.id, generation: plan.generation + 1)
        return try? ResumeData(
            plan.record(
                of: record, generation: ticket?.generation ?? plan.generation, hasTicket: ticket != nil))
    }
}

extension PartialFile {
    /// Whether the first `size` bytes have the digests that the server told; `nil` where `flag` was raised.
    fileprivate func matches(_ told: DigestField, size: Int64, until flag: StopFlag) throws(Errno) -> Bool? {
        var digests: [(RunningDigest, expected: [UInt8])] = told.values.compactMap { value in
            Algorithm(rawValue: value.algorithm.rawValue).map { (RunningDigest($0), value.bytes) }
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            if flag.isRaised { return nil }
            let wanted = Int(min(Int64(buffer.count), size - offset))
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count > 0 else { throw .inputOutput }
            for index in digests.indices {
                digests[index].0.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
            offset += Int64(count)
        }
        return digests.allSatisfy { $0.0.finalized() == $0.expected }
    }
}
