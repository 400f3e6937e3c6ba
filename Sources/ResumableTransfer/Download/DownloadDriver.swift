import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Carries messages between the state machine of a download, the engine and the partial file, and tells what happens.
/// All decisions about the protocol are the machine's.
///
/// One task owns it from beginning to end.
final class DownloadDriver {
    typealias Control = TransferControl<DownloadResult>

    let core: ClientCore
    let plan: DownloadPlan
    /// Held while a resumed download runs.
    var claim: TicketClaim?
    let control: Control
    let progress: TransferProgress

    var machine: DownloadMachine
    /// Where the bytes go; there from before the first request on.
    var files: PartialFiles?
    /// What the last checkpoint that was handed out holds, and what the last one that was kept holds.
    var told: DownloadRecord?
    private var kept: DownloadRecord?
    /// In monotonic nanoseconds.
    private var toldAt: Int64 = 0
    /// Between two checkpoints that differ only in the bytes received, in nanoseconds.
    private static let checkpointPause: Int64 = 500_000_000
    private var toldProgress: (position: Int64, total: Int64?)?
    /// Whether the next content is one after an interruption.
    var isResuming: Bool
    /// The last final response that was none of the representation, with what was kept of its content.
    var response: TransferResponse?
    /// Why the machine was told of an interruption, in more words than it needs.
    var lastFailure: TransferError?
    /// The synchronization that goes on beside the exchange.
    var synchronization: Task<Void, Never>?
    /// Bytes of content that came, over all requests.
    var received: Int64 = 0
    var requests = 0

    init(core: ClientCore, plan: DownloadPlan, control: Control, progress: TransferProgress) {
        self.core = core
        self.plan = plan
        self.control = control
        self.progress = progress
        machine = DownloadDriver.machine(core.configuration)
        isResuming = plan.resumed != nil
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

    func run(isAdmitted: Bool) async -> Result<DownloadResult, TransferError> {
        // A later transfer may use both as soon as the end is known.
        defer {
            files?.close()
            claim = nil
        }
        do throws(TransferError) {
            if plan.resumed != nil {
                claim = try await core.claim(plan.id, generation: plan.generation, hasTicket: plan.hasTicket)
            }
        } catch {
            return .failure(control.unclaimed(error, plan.data))
        }
        do throws(TransferError) {
            guard isAdmitted else { throw TransferError(.shutDown, "The client was shut down.") }
            if control.stop == nil { control.events.send(.started(total: plan.resumed?.total)) }
            try checkRequest()
            if let stop = control.stop, stop != .cancel(deleting: true) { throw error(of: stop) }
            switch try await openPartial() {
            case .published(let path, let size):
                if let stop = control.stop, stop != .pause { throw error(of: stop) }
                claim?.remove()
                return .success(finish(published: path, size: size))
            case .files(let files): await prepare(files)
            }
            let result = try await transfer()
            claim?.remove()
            return .success(result)
        } catch {
            return .failure(await concluding(error))
        }
    }

    // MARK: Before the first request

    private func checkRequest() throws(TransferError) {
        guard RequestURI(plan.request.uri) != nil else {
            throw TransferError(.invalidRequest, "The URI of a download has to be an absolute one of http or https.")
        }
        guard plan.request.method == .get else {
            throw TransferError(.invalidRequest, "A download is a GET.")
        }
        let fields = core.configuration.fields.merging(plan.request.fields)
        for name in ["Range", "If-Range"] where fields.contains(name) {
            throw TransferError(.invalidRequest, "Which part is asked for is not the caller's choice (\(name)).")
        }
    }

    private enum Opened: Sendable {
        case files(PartialFiles)
        /// The file has its name already.
        case published(path: FilePath, size: Int64)
    }

    /// Opens the partial file of an earlier run, or makes a new one.
    private func openPartial() async throws(TransferError) -> Opened {
        let plan = plan
        let storage = core.storage
        return try await BlockingWork.run {
            Result { () throws(TransferError) in try DownloadDriver.openPartial(plan, storage) }
        }.get()
    }

    private func prepare(_ files: PartialFiles) async {
        self.files = files
        guard files.representation != nil else { return }
        machine = DownloadDriver.machine(core.configuration, files)
        followMachine(files)
        await keepCheckpoint()
        tellProgress()
    }

    private static func openPartial(
        _ plan: DownloadPlan, _ storage: TransferStorage
    ) throws(TransferError) -> Opened {
        guard let place = try PartialPlace.open(plan.destination, storage: storage) else {
            throw TransferError(.destinationUnusable, "There is no directory for the file.")
        }
        var records: [DownloadRecord] = []
        if let resumed = plan.resumed { records = [resumed] + (resumed.earlier ?? []) }
        do throws(Errno) {
            _ = try place.existing()
            var found: [(file: PartialFile, representation: DownloadRepresentation)] = []
            for (index, record) in records.enumerated() {
                switch try PartialFile.open(record, in: place) {
                case .usable(let file): found.append((file, DownloadRepresentation(record)))
                case .unusable:
                    guard index == 0, let path = try PartialFile.isPublished(record, in: place) else { continue }
                    for old in records.dropFirst() { _ = try PartialFile.discard(old, in: place) }
                    return .published(path: path, size: record.received)
                case .busy: throw .wouldBlock
                }
            }
            guard let first = found.first else {
                return .files(PartialFiles(place, try PartialFile.create(in: place)))
            }
            let earlier = found.count > 1 ? found[1] : nil
            return .files(PartialFiles(place, first.file, first.representation, earlier: earlier))
        } catch {
            if error == .wouldBlock {
                throw TransferError(.resumeDataUsed, "Another transfer is writing the partial file.")
            }
            throw destinationError(error)
        }
    }

    /// The machine decides which of the files holds the bytes at hand.
    func followMachine(_ files: PartialFiles) {
        if machine.earlier == nil, !machine.isFinished, files.earlier != nil { files.goBack() }
        files.note(machine.representation)
    }

    // MARK: The loop

    private func transfer() async throws(TransferError) -> DownloadResult {
        while true {
            // What is whole already is not given up.
            if let stop = control.stop, !machine.isFinished || stop != .pause { throw error(of: stop) }
            switch machine.next() {
            case .send(let request): try await perform(request)
            case .wait(let duration, let reason):
                isResuming = true
                control.events.send(.interrupted(error(of: reason), retryIn: duration))
                await control.sleep(for: duration)
            case .finished(let head): return try await finish(head)
            case .failed(let failure): throw error(of: failure)
            }
        }
    }

    // MARK: What is told

    func tellProgress() {
        guard let files else { return }
        let position = files.current.position
        let total = files.representation?.total
        if let toldProgress, toldProgress == (position, total) { return }
        toldProgress = (position, total)
        progress.update(completed: position, total: total)
        control.events.send(.received(position, total: total))
    }

    /// Keeps what could be resumed, and hands it out if a later process needs to know more than before.
    /// - Parameter isDue: whether it is handed out in any case.
    func keepCheckpoint(isDue: Bool = false) async {
        guard let record = downloadRecord() else {
            told = nil
            kept = nil
            return control.keep(nil, isNews: false)
        }
        let now = SystemClock.monotonicNanoseconds()
        // More bytes that are known again and not on stable storage are no news of their own: they come all the time.
        let isNews =
            isDue
            || told.map {
                record.atMark != $0.atMark || (record != $0 && now - toldAt >= Self.checkpointPause)
            } ?? true
        guard isNews || record != kept else { return }
        kept = record
        let data = try? ResumeData(plan.record(of: record, generation: plan.generation, hasTicket: false))
        control.keep(data, isNews: false)
        guard isNews else { return }
        told = record
        toldAt = now
        if let data { await core.configuration.checkpointed?(data) }
        control.keep(data, isNews: true)
    }

    /// What has to be known to resume the download; `nil` where nothing can be resumed.
    func downloadRecord() -> DownloadRecord? {
        guard let files else { return nil }
        let earlier = files.earlier.map { makeRecord(of: $0.file, $0.representation) }
        guard let representation = files.representation, representation.validator != nil, !files.current.isSpoilt
        else { return earlier }
        var record = makeRecord(of: files.current, representation)
        record.earlier = earlier.map { [$0] }
        return record
    }

    private func makeRecord(of partial: PartialFile, _ representation: DownloadRepresentation) -> DownloadRecord {
        let mark = partial.mark
        var destination: FilePath?
        if case .file(let path) = plan.destination { destination = path }
        return DownloadRecord(
            destination: destination, partialName: partial.name, inode: partial.inode,
            received: mark.span?.end ?? mark.position, synchronized: mark.position, bootID: BootIdentity.current,
            tailDigest: mark.tailDigest, spanDigest: mark.span?.digest, entityTag: representation.entityTag?.serialized,
            lastModified: representation.lastModified, date: representation.date, total: representation.total,
            mediaType: representation.mediaType, contentCoding: representation.contentCoding,
            digest: representation.digest)
    }
}

extension DownloadRecord {
    /// The same without what is not on stable storage.
    fileprivate var atMark: DownloadRecord {
        var record = self
        record.received = synchronized
        record.spanDigest = nil
        return record
    }
}
