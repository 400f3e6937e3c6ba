import Digests
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// The common part of the transfers of a folder: the folder on both sides, and requests that transfer no file.
struct FolderTransfer: Sendable {
    /// A file of at most this size, in bytes, is transferred in one request without a state: after an interruption it is
    /// transferred again from its beginning.
    static let maxSingleRequest: Int64 = 256 << 10

    let kind: TransferIdentity.Kind
    /// The absolute path of the directory, without symbolic links.
    let root: FilePath
    let url: TransferURL
    let settings: ClientSettings
    let report: TransferReport
    let progress: GroupProgress
    let signals: SignalWatch
    let clients: CommandClients
    let client: TransferClient
    /// The names of the states that existed when the command started.
    private let states: Set<FilePath>

    init(
        _ identity: TransferIdentity, _ url: TransferURL, _ settings: ClientSettings, _ report: TransferReport,
        _ signals: SignalWatch, _ clients: CommandClients
    ) throws(CommandFailure) {
        kind = identity.kind
        root = identity.path
        self.url = url
        self.settings = settings
        self.report = report
        self.signals = signals
        self.clients = clients
        client = try clients.client(for: settings, report)
        progress = GroupProgress(folder: identity.path, total: nil, now: TransferReport.now)
        states = Set(PrivateDirectory.existingStates()?.stems() ?? [])
    }

    /// Runs the transfers, and shows their progress and their result.
    func run(_ transfers: inout some TransferSequence) async -> ExitStatus {
        let group = TransferReport(report, in: progress)
        let ticking = report.everyHalfSecond { group.showGroup() }
        signals.onResize { group.showGroup() }
        let simultaneous = SimultaneousTransfers(settings, report, signals, progress)
        let status = await signals.stopping(by: { group.noteStop() }) { await simultaneous.run(&transfers) }
        ticking?.cancel()
        report.note(progress.summary(kind == .put ? "Sent" : "Received", now: TransferReport.now))
        return status
    }

    /// Counts the files in the background, if their number is shown.
    /// - Returns: a flag that ends the count.
    func countFiles(in directory: FileDescriptor) -> StopFlag {
        let flag = StopFlag()
        guard report.isProgressShown else { return flag }
        BlockingWork.start { [progress] in
            if let total = LocalTree.total(of: directory, while: { !flag.isRaised }) { progress.setTotal(total) }
        }
        return flag
    }

    /// The identity of a file or folder.
    func identity(_ path: FilePath, isFolder: Bool = false) -> TransferIdentity {
        TransferIdentity(
            kind: kind, path: path.isEmpty ? root : root.appending(path),
            method: (kind == .put ? Method.put : .get).rawValue, url: url.entry(path, isFolder: isFolder).identity)
    }

    /// Reports an entry that cannot be transferred.
    func fail(_ path: FilePath, _ failure: CommandFailure) -> NextTransfer {
        let report = TransferReport(report, in: progress)
        report.begin(identity(path), kept: 0, total: nil, reference: nil)
        return NextTransfer.none(report.ended(failure))
    }

    /// Whether an earlier run has left a state of this transfer.
    func hasState(_ identity: TransferIdentity) -> Bool {
        !states.isEmpty && states.contains(FilePath(identity.name))
    }

    /// Whether a file is transferred in one request without a state.
    func isSingleRequest(_ size: Int64, _ identity: TransferIdentity) -> Bool {
        size <= Self.maxSingleRequest && size <= settings.appendSize ?? .max && !settings.isCareful
            && settings.dialect == .newest && !settings.isVerbose && !hasState(identity)
    }
}

/// Requests.
extension FolderTransfer {
    typealias FetchResult = Result<(response: TransferResponse, isComplete: Bool), TransferError>

    /// Sends one request, which a signal that stops the command ends.
    func fetch(
        _ request: TransferRequest, content: [UInt8]? = nil, limit: Int = 64 << 10, stallTimeout: Duration? = nil
    ) async -> FetchResult {
        do throws(TransferError) {
            let sent = try await client.send(request, content: content, limit: limit, stallTimeout: stallTimeout)
            return await signals.stopping(by: sent.cancel) { await sent.response() }
        } catch {
            return .failure(error)
        }
    }

    /// The fields of requests that do not transfer a file: those of the user without conditions and descriptions.
    private func fields(_ fields: Fields) -> Fields {
        var result = Fields(
            settings.fields.filter { field in
                let name = field.name.lowercased()
                return !name.hasPrefix("if-") && !name.hasPrefix("content-") && name != "repr-digest"
            }.map { ($0.name, $0.value) })
        for field in fields { result.set(field.name, field.value) }
        return result
    }

    /// Returns a page of the list of a folder, after several attempts if necessary.
    func listing(_ uri: String) async throws(CommandFailure) -> FolderListing {
        let request = TransferRequest(uri, fields: fields(["Accept": "application/json"]))
        let policy = client.configuration.retry
        var attempts = 0
        while true {
            let failure: CommandFailure
            switch await fetch(request, limit: FolderListing.maxSize) {
            case .success((let response, let isComplete)) where response.status == .ok:
                return try FolderListing(response, isComplete: isComplete, from: uri)
            case .success((let response, _)):
                guard response.status.isTransient else {
                    throw CommandFailure(response, action: "does not list the folder")
                }
                failure = CommandFailure(
                    status: .tryAgain, code: "server-unavailable",
                    message: "The server cannot list the folder now (\(response.status)).", response: response.status)
            case .failure(let error):
                failure = CommandFailure(error)
                guard failure.status == .tryAgain, error.code != .paused else { throw failure }
            }
            attempts += 1
            guard attempts <= policy.maxRetriesWithoutProgress else { throw failure }
            let delay = policy.delay(
                before: attempts, random: Double.random(in: 0..<1), isRefused: failure.response != nil)
            report.note("Interrupted: \(failure.message) Trying again.")
            let sleep = Task { try? await Task.sleep(for: delay) }
            _ = await signals.stopping(by: { sleep.cancel() }) { await sleep.value }
        }
    }

    /// Whether the server reports that it does not have this folder. If so, it has no file below the folder.
    func isMissing(_ path: FilePath) async -> Bool {
        let uri = url.entry(path, isFolder: true).request + "?limit=1"
        guard
            case .success((let response, _)) = await fetch(
                TransferRequest(uri, fields: fields(["Accept": "application/json"])))
        else { return false }
        return response.status == .notFound || response.status == .gone
    }

    /// Whether the file on the server has the same bytes as the file on this machine. If an earlier run has sent the
    /// file, it is sufficient that nothing indicates a change.
    /// - Parameters:
    ///   - local: the attributes of the file on this machine.
    ///   - sent: the record of the file if an earlier run has sent it.
    ///   - open: opens it for reading.
    func isUnchanged(
        _ path: FilePath, _ local: FileStatus, _ sent: SentTable.Record? = nil,
        open: @escaping @Sendable () throws(Errno) -> FileDescriptor
    ) async -> Bool {
        if let sent {
            let request = TransferRequest(url.entry(path).request, method: .head, fields: fields([:]))
            guard case .success((let response, _)) = await fetch(request) else { return false }
            let version = RemoteVersion(response, size: local.size)
            if version == .unknown { return true }
            if case .sameSize = version, sent.matches(entityTag: response.fields["ETag"]) { return true }
        }
        let request = TransferRequest(
            url.entry(path).request, method: .head,
            fields: fields(["Want-Repr-Digest": "sha-256=10", "Accept-Encoding": "identity"]))
        // The server reads the file before it responds.
        let timeout = client.configuration.stallTimeout.map { $0 + .seconds(local.size / 50_000_000) }
        guard case .success((let response, _)) = await fetch(request, stallTimeout: timeout),
            case .sameSize(let digest, let modified) = RemoteVersion(response, size: local.size)
        else { return false }
        if let digest { return await BlockingWork.run { (try? FileDigest.sha256(of: open())) == digest } }
        return kind == .get && modified.map { FileStatus.Time(seconds: $0, nanoseconds: 0) } == local.modified
    }
}

/// The server's version of a file, according to the response to `HEAD`.
enum RemoteVersion: Sendable, Hashable {
    /// The file does not exist, or has another size.
    case other
    /// The server does not state anything about the file, for example because only writing is allowed.
    case unknown
    /// The file has the same size.
    /// - `digest`: its SHA-256, if the server sends it.
    /// - `modified`: its modification time in seconds since 1970, if no later version can have the same time.
    case sameSize(digest: [UInt8]?, modified: Int64?)

    /// - Parameters:
    ///   - response: the response to `HEAD`.
    ///   - size: the size of the file on this machine, in bytes.
    init(_ response: TransferResponse, size: Int64) {
        switch response.status {
        case .ok:
            guard response.fields["Content-Length"].flatMap({ Int64($0) }) == size,
                ["", "identity"].contains(response.fields["Content-Encoding"] ?? "")
            else {
                self = .other
                return
            }
            let digest = DigestField(fieldLines: response.fields.values("Repr-Digest"))?[.sha256]
            self = .sameSize(digest: digest, modified: response.strongModificationTime)
        case .notFound, .gone: self = .other
        default: self = .unknown
        }
    }
}

/// Digests of entire files.
enum FileDigest {
    /// The SHA-256 of the bytes of a file.
    static func sha256(of file: FileDescriptor) throws(Errno) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try file.read(into: buffer, at: offset)
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
            if count < buffer.count { return digest.finalized() }
        }
    }
}
