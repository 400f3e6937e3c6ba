import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// The downloads of `get -r`: each file below a folder of a server is written to the same path below a directory.
struct FolderDownloads: TransferSequence {
    private let folder: FolderTransfer
    private let synchronization: FileSystemSynchronization
    private var tree: RemoteTree

    /// - Parameter synchronization: synchronizes the file system of the directory.
    init(_ folder: FolderTransfer, _ directory: FileDescriptor, _ synchronization: FileSystemSynchronization) {
        self.folder = folder
        self.synchronization = synchronization
        tree = RemoteTree(folder, directory)
    }

    mutating func next() async -> NextTransfer? {
        if folder.signals.isStopRequested { return NextTransfer.none(.tryAgain) }
        switch await tree.next() {
        case .file(let file):
            return .transfer(
                GroupedTransfer(size: file.size ?? 0, canStartBesideOthers: { true }) {
                    [folder, synchronization] report, spareLock in
                    await FolderDownload(folder, file, synchronization, report).run(spareLock)
                })
        case .problem(let path, let failure): return folder.fail(path, failure)
        case nil: return nil
        }
    }
}

/// The download of one file of a folder.
private struct FolderDownload: Sendable {
    private let folder: FolderTransfer
    private let file: RemoteTree.File
    private let synchronization: FileSystemSynchronization
    private let report: TransferReport
    private let identity: TransferIdentity

    init(
        _ folder: FolderTransfer, _ file: RemoteTree.File, _ synchronization: FileSystemSynchronization,
        _ report: TransferReport
    ) {
        self.folder = folder
        self.file = file
        self.synchronization = synchronization
        self.report = report
        identity = folder.identity(file.path)
    }

    func run(_ spareLock: StateLock?) async -> (status: ExitStatus, lock: StateLock?) {
        // If there is a state, there may also be a partial file.
        if !folder.settings.shouldRestart, !folder.hasState(identity), let size = await unchangedSize() {
            report.begin(identity, kept: size, total: size, reference: nil)
            report.completed(status: 200, location: identity.url, size: size, skipped: .unchanged)
            return (.done, spareLock)
        }
        report.begin(identity, kept: 0, total: file.size, reference: nil)
        if folder.isSingleRequest(file.size ?? .max, identity), let status = await receiveAtOnce() {
            return (status, spareLock)
        }
        guard let url = try? TransferURL(folder.url.entry(file.path).request) else {
            return (report.ended(CommandFailure(.internalFailure, "internal-failure", "The URL is invalid.")), nil)
        }
        var job = TransferJob(url, to: identity.path, folder.settings)
        job.root = folder.root
        job.downloaded = { [file] result in
            let response = TransferResponse(status: result.status, fields: result.fields)
            guard let time = response.strongModificationTime else { return }
            let written = try? file.directory.open(at: file.name, [.readOnly, .noFollow, .nonBlocking])
            try? written?.setModified(FileStatus.Time(seconds: time, nanoseconds: 0))
        }
        return await job.run(report, folder.signals, folder.clients, SentFilesLists(), reusing: spareLock)
    }

    /// The size of the file on this machine, if it has the same bytes as the one on the server; otherwise `nil`.
    ///
    /// A received file gets the modification time of the server's file if no later version can have the same time. So if
    /// it has the time and the size in the list, it is unchanged.
    private func unchangedSize() async -> Int64? {
        guard let local = try? file.directory.status(at: file.name), local.isRegular, local.size == file.size else {
            return nil
        }
        if let modified = file.modified, local.modified == FileStatus.Time(seconds: modified, nanoseconds: 0) {
            return local.size
        }
        let isUnchanged = await folder.isUnchanged(file.path, local) { [file] () throws(Errno) in
            try file.directory.open(at: file.name, [.readOnly, .noFollow, .nonBlocking])
        }
        return isUnchanged ? local.size : nil
    }

    /// Receives a small file in one response.
    /// - Returns: `nil` if the file has to be requested again by a ``TransferJob``, which repeats requests after
    ///   temporary failures and follows redirections.
    private func receiveAtOnce() async -> ExitStatus? {
        var request = TransferRequest(folder.url.entry(file.path).request, fields: folder.settings.fields)
        if !request.fields.contains("Accept-Encoding") { request.fields.append("Accept-Encoding", "identity") }
        let response: TransferResponse
        let isComplete: Bool
        switch await folder.fetch(request, limit: Int(FolderTransfer.maxSingleRequest)) {
        case .success(let result): (response, isComplete) = result
        case .failure(let error): return error.code == .paused ? report.ended(CommandFailure(error)) : nil
        }
        if response.status.rawValue >= 400, !response.status.isTransient {
            return report.ended(CommandFailure(response, action: "refused the download"))
        }
        // Only a ``TransferJob`` verifies digests.
        guard response.status == .ok, isComplete, !response.fields.contains("Content-Encoding"),
            !response.fields.contains("Repr-Digest")
        else { return nil }
        do throws(Errno) {
            try DownloadDestination.write(
                response.content, as: file.name, in: file.directory, at: identity.path.directory,
                modified: response.strongModificationTime)
        } catch {
            return report.ended(.destination(error, of: "file"))
        }
        let size = Int64(response.content.count)
        synchronization.note(written: size)
        report.report(.started(total: size))
        report.completed(status: response.status.rawValue, location: identity.url, size: size)
        return .done
    }
}
