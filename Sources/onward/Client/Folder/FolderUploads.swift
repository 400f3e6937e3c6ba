import Digests
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// The uploads of `put -r`: each file below a directory is sent with PUT to the URL with the same path.
struct FolderUploads: TransferSequence {
    private let folder: FolderTransfer
    private let sent: SentTable
    private let finished: SentFilesLists
    private var tree: LocalTree

    init(
        _ folder: FolderTransfer, _ directory: FileDescriptor, _ sent: SentTable, _ finished: SentFilesLists
    ) throws(Errno) {
        self.folder = folder
        self.sent = sent
        self.finished = finished
        tree = try LocalTree(directory)
    }

    mutating func next() async -> NextTransfer? {
        while !folder.signals.isStopRequested, let item = tree.next() {
            switch item {
            case .directory(let path):
                if !tree.isFolderMissing, !folder.settings.shouldRestart {
                    tree.isFolderMissing = await folder.isMissing(path)
                }
            case .file(let file):
                return .transfer(
                    GroupedTransfer(size: file.status.size, canStartBesideOthers: { true }) {
                        [folder, sent, finished] report, spareLock in
                        await FolderUpload(folder, file, sent, finished, report).run(spareLock)
                    })
            case .omitted(let path, let reason): folder.report.warn("\(path) is left out: \(reason)")
            case .problem(let path, let failure): return folder.fail(path, failure)
            }
        }
        return folder.signals.isStopRequested ? NextTransfer.none(.tryAgain) : nil
    }
}

/// The upload of one file of a folder.
private struct FolderUpload: Sendable {
    private let folder: FolderTransfer
    private let file: LocalTree.File
    private let sent: SentTable
    private let finished: SentFilesLists
    private let report: TransferReport
    private let identity: TransferIdentity

    init(
        _ folder: FolderTransfer, _ file: LocalTree.File, _ sent: SentTable, _ finished: SentFilesLists,
        _ report: TransferReport
    ) {
        self.folder = folder
        self.file = file
        self.sent = sent
        self.finished = finished
        self.report = report
        identity = folder.identity(file.path)
    }

    func run(_ spareLock: StateLock?) async -> (status: ExitStatus, lock: StateLock?) {
        let size = file.status.size
        if !folder.settings.shouldRestart {
            let record = file.isFolderMissing ? nil : sent.record(of: file)
            if !file.isFolderMissing, await isUnchanged(record) {
                // An earlier process was killed before it had removed the state.
                if folder.hasState(identity) {
                    await (try? CommandState.claim(identity, chosen: nil))?.remove()
                }
                return (skip(record == nil ? .unchanged : .sentEarlier), spareLock)
            }
        }
        report.begin(identity, kept: 0, total: size, reference: nil)
        let source: FileSource
        do throws(TransferError) {
            source = try FileSource(file.name, in: file.directory, path: identity.path)
        } catch {
            return (report.ended(CommandFailure(source: error)), spareLock)
        }
        if folder.isSingleRequest(size, identity), let status = await sendAtOnce(source) {
            return (status, spareLock)
        }
        guard let url = try? TransferURL(folder.url.entry(file.path).request) else {
            return (
                report.ended(CommandFailure(.internalFailure, "internal-failure", "The URL is invalid.")), spareLock
            )
        }
        var job = TransferJob(identity.path, to: url, folder.settings)
        job.source = source
        let (status, lock) = await job.run(report, folder.signals, folder.clients, finished, reusing: spareLock)
        if status == .done { sent.insert(file, entityTag: nil) }
        return (status, lock)
    }

    private func isUnchanged(_ record: SentTable.Record?) async -> Bool {
        await folder.isUnchanged(file.path, file.status, record) { [file] () throws(Errno) in
            try file.directory.open(at: file.name, [.readOnly, .noFollow, .nonBlocking])
        }
    }

    private func skip(_ reason: SkipReason) -> ExitStatus {
        report.begin(identity, kept: file.status.size, total: file.status.size, reference: nil)
        report.completed(status: 200, location: identity.url, size: file.status.size, skipped: reason)
        return .done
    }

    /// Sends a small file in one request.
    /// - Returns: `nil` if ``TransferJob`` has to send the file: it repeats requests after temporary failures, and follows
    ///   redirections.
    private func sendAtOnce(_ source: FileSource) async -> ExitStatus? {
        let size = Int(file.status.size)
        var content: [UInt8] = []
        do throws(SourceError) {
            content = try [UInt8](unsafeUninitializedCapacity: size) { buffer, count throws(SourceError) in
                count = try source.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
            }
            guard content.count == size, source.status.size == file.status.size else { throw .changed }
        } catch {
            return report.ended(
                error == .changed
                    ? CommandFailure(.sourceChanged, "source-changed", "The source has changed while it was read.")
                    : CommandFailure(.inputOutput, "source-unavailable", "The source could not be read."),
                advice: "Run the same command again to send it.")
        }
        var request = TransferRequest(folder.url.entry(file.path).request, method: .put, fields: folder.settings.fields)
        if folder.settings.shouldSendDigest {
            var digest = RunningDigest(.sha256)
            content.withUnsafeBytes { digest.update($0) }
            request.fields.set("Repr-Digest", DigestField(values: [(.sha256, digest.finalized())]).serialized)
        }
        switch await folder.fetch(request, content: content) {
        case .success((let response, _)) where response.status.isSuccessful:
            sent.insert(file, entityTag: response.fields["ETag"])
            report.report(.started(total: file.status.size))
            report.completed(
                status: response.status.rawValue, location: identity.url, size: file.status.size,
                content: response.content)
            return .done
        case .success((let response, _)):
            guard response.status.rawValue >= 400, !response.status.isTransient else { return nil }
            return report.ended(CommandFailure(response, action: "rejected the content"))
        case .failure(let error): return error.code == .paused ? report.ended(CommandFailure(error)) : nil
        }
    }
}
