import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The operation of a download. It connects the transport with the state machine, which makes all decisions about the
/// protocol, and with the partial file.
final class FileDownloadOperation: DownloadOperation {
    typealias Success = DownloadResult
    typealias Input = DownloadDestination

    unowned let driver: TransferDriver<FileDownloadOperation>
    var machine: DownloadMachine
    /// Receives the bytes; set before the first request.
    private(set) var files: PartialFiles?
    private var reportedProgress: (position: Int64, total: Int64?)?
    /// The synchronization that runs during the exchange.
    var synchronization: Task<Void, Never>?
    /// The number of bytes of content that all requests have received.
    var received: Int64 = 0

    static func total(of plan: TransferPlan<FileDownloadOperation>) -> Int64? { plan.resumed?.total }

    init(driver: TransferDriver<FileDownloadOperation>) {
        self.driver = driver
        machine = FileDownloadOperation.machine(driver.client.configuration)
    }

    private static func machine(
        _ configuration: TransferClient.Configuration, _ files: PartialFiles? = nil
    ) -> DownloadMachine {
        let earlier = files?.earlier.map { file, representation in
            DownloadMachine.Bytes(representation: representation, position: file.position)
        }
        return DownloadMachine(
            files?.representation, position: files?.current.position ?? 0, earlier: earlier, retry: configuration.retry,
            random: { Double.random(in: 0..<1) })
    }

    // MARK: Before the first request

    func prepare() async throws(TransferError) -> DownloadResult? {
        try checkRequest()
        let control = driver.control
        if let stop = control.stop, stop != .cancel(deleting: true) { try handle(stop) }
        switch try await openPartial() {
        case .published(let path, let size):
            if let stop = control.stop, stop != .pause { try handle(stop) }
            return finish(published: path, size: size)
        case .files(let files):
            self.files = files
            guard files.representation != nil else { return nil }
            machine = FileDownloadOperation.machine(driver.client.configuration, files)
            selectCurrentFile(files)
            await driver.keepCheckpoint()
            reportProgress()
            return nil
        }
    }

    private enum Opened: Sendable {
        case files(PartialFiles)
        /// The file already has its final name.
        case published(path: FilePath, size: Int64)
    }

    /// Opens the partial file of an earlier run, or creates a new one.
    private func openPartial() async throws(TransferError) -> Opened {
        let plan = driver.plan
        let storage = driver.client.storage
        return try await BlockingWork.run {
            Result { () throws(TransferError) in
                try FileDownloadOperation.openPartial(plan.input, plan.resumed, storage)
            }
        }.get()
    }

    private static func openPartial(
        _ destination: DownloadDestination, _ resumed: DownloadCheckpoint?, _ storage: TransferStorage
    ) throws(TransferError) -> Opened {
        guard let location = try PartialFileLocation.open(destination, storage: storage) else {
            throw TransferError(
                .destinationUnusable, "There is no directory for \(destination.path.map { "\($0)" } ?? "the file").")
        }
        let checkpoints = resumed.map { [$0] + ($0.earlier ?? []) } ?? []
        do throws(Errno) {
            _ = try location.existing()
            var found: [(file: PartialFile, representation: DownloadRepresentation)] = []
            for (index, checkpoint) in checkpoints.enumerated() {
                switch try PartialFile.open(checkpoint, in: location) {
                case .usable(let file): found.append((file, DownloadRepresentation(checkpoint)))
                case .unusable:
                    guard index == 0, let path = try PartialFile.isPublished(checkpoint, in: location) else { continue }
                    for old in checkpoints.dropFirst() { _ = try PartialFile.discard(old, in: location) }
                    return .published(path: path, size: checkpoint.received)
                case .busy: throw .wouldBlock
                }
            }
            guard let first = found.first else {
                return .files(PartialFiles(location, try PartialFile.create(in: location)))
            }
            let earlier = found.count > 1 ? found[1] : nil
            return .files(PartialFiles(location, first.file, first.representation, earlier: earlier))
        } catch {
            if error == .wouldBlock {
                throw TransferError(.resumeDataUsed, "Another transfer is writing the partial file.")
            }
            throw destinationError(error, of: destination)
        }
    }

    /// Makes the earlier file the current one if the machine has returned to its bytes. Then updates the metadata of
    /// the current file.
    func selectCurrentFile(_ files: PartialFiles) {
        if machine.earlier == nil, !machine.isFinished, files.earlier != nil { files.returnToEarlier() }
        files.setRepresentation(machine.representation)
    }

    // MARK: Steps

    func reportProgress() {
        guard let files else { return }
        let position = files.current.position
        let total = files.representation?.total
        if let reportedProgress, reportedProgress == (position, total) { return }
        reportedProgress = (position, total)
        driver.progress.update(completed: position, total: total)
        driver.control.events.send(.received(position, total: total))
    }

    var checkpoint: DownloadCheckpoint? {
        guard let files else { return nil }
        let earlier = files.earlier.map { self.checkpoint(of: $0.file, $0.representation) }
        guard let representation = files.representation, representation.validator != nil, !files.current.isCorrupt
        else { return earlier }
        var checkpoint = self.checkpoint(of: files.current, representation)
        checkpoint.earlier = earlier.map { [$0] }
        return checkpoint
    }

    private func checkpoint(of partial: PartialFile, _ representation: DownloadRepresentation) -> DownloadCheckpoint {
        let mark = partial.mark
        return DownloadCheckpoint(
            destination: driver.plan.input.path, root: driver.plan.input.root, partialName: partial.name,
            inode: partial.inode,
            received: mark.span?.end ?? mark.position, synchronized: mark.position, bootID: BootIdentity.current,
            tailDigest: mark.tailDigest, spanDigest: mark.span?.digest, entityTag: representation.entityTag?.serialized,
            lastModified: representation.lastModified, date: representation.date, total: representation.total,
            mediaType: representation.mediaType, contentCoding: representation.contentCoding,
            digest: representation.digest)
    }

    func close() { files?.close() }

    static func destinationError(_ error: Errno, of destination: DownloadDestination) -> TransferError {
        TransferError(
            .destinationUnusable, "\(destination.path.map { "\($0)" } ?? "The file") cannot be written.",
            underlying: error)
    }
}

extension TransferPlan<FileDownloadOperation> {
    init(_ request: TransferRequest, to destination: DownloadDestination) {
        var absolute = destination
        if let path = destination.path, !path.isAbsolute, !path.isEmpty {
            absolute = .file((try? FilePath(".").resolved())?.appending(path) ?? path, beneath: destination.root)
        }
        self.init(request, absolute)
    }

    /// Plans the resumption of a download.
    init(resuming data: ResumeData, request: TransferRequest?) throws(TransferError) {
        guard case .download(let checkpoint) = data.record.content else {
            throw TransferError(.resumeDataInvalid, "This is not the resume data of a download.")
        }
        self.init(resuming: data.record, checkpoint, request: request, DownloadDestination(checkpoint))
    }
}

extension DownloadDestination {
    init(_ checkpoint: DownloadCheckpoint) {
        self = checkpoint.destination.map { .file($0, beneath: checkpoint.root) } ?? .temporary
    }
}
