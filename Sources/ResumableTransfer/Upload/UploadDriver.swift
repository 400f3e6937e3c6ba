import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Carries messages between the state machine of an upload and the engine, and tells what happens. All decisions are
/// the machine's.
///
/// One task owns it from beginning to end.
final class UploadDriver {
    typealias Control = TransferControl<UploadResult>

    let core: ClientCore
    let plan: UploadPlan
    /// Held from the first checkpoint, or the resumption, until the end.
    private var claim: TicketClaim?
    let control: Control
    let progress: TransferProgress

    var machine: ClientUpload
    /// By what the source is known; read before the first request.
    var sourceRecord = SourceRecord()
    /// What the last checkpoint said.
    var told: UploadResumption?
    /// Whether the next append is one after an interruption.
    var isResuming: Bool
    /// The last final response, with what was kept of its content.
    var response: TransferResponse?
    var lastLocation: ResolvedLocation?
    /// Why the machine was told of an interruption, in more words than it needs.
    var lastFailure: TransferError?
    /// Bytes of content handed to the kernel, over all requests.
    var sent: Int64 = 0
    /// Position in the representation up to which the last request with content handed bytes to the kernel.
    var position: Int64 = 0
    var requests = 0
    /// Whether a 104 came for the request that is being sent.
    var isAnnounced = false

    init(core: ClientCore, plan: UploadPlan, control: Control, progress: TransferProgress) {
        self.core = core
        self.plan = plan
        self.control = control
        self.progress = progress
        machine = UploadDriver.machine(for: plan, core, fields: Fields())
        isResuming = plan.resumed != nil
    }

    func run(isAdmitted: Bool) async -> Result<UploadResult, TransferError> {
        // A later upload may claim it as soon as the end is known.
        defer { claim = nil }
        do throws(TransferError) {
            if plan.resumed != nil {
                claim = try await core.claim(
                    plan.id, generation: plan.generation, hasTicket: plan.hasTicket, createsFile: plan.isResumable)
            }
        } catch {
            return .failure(control.unclaimed(error, plan.data))
        }
        guard isAdmitted else { return .failure(withResumeData(TransferError(.shutDown, "The client was shut down."))) }
        if control.stop == nil { control.events.send(.started(total: plan.length)) }
        do throws(TransferError) {
            try await prepare()
            // Handed out before the server is asked: what is saved of it supersedes the data that was resumed.
            if plan.isResumable { await keepCheckpoint() }
            let result = try await transfer()
            claim?.remove()
            return .success(result)
        } catch {
            return .failure(withResumeData(error))
        }
    }

    /// What has to be known before the first request.
    private func prepare() async throws(TransferError) {
        guard RequestURI(plan.request.uri) != nil else {
            throw TransferError(.invalidRequest, "The URI of an upload has to be an absolute one of http or https.")
        }
        if let resumed = plan.resumed {
            sourceRecord = resumed.source
            return
        }
        let source = plan.source
        if let recognizable = source as? any RecognizableSource {
            sourceRecord = try await BlockingWork.run {
                Result { () throws(TransferError) in try recognizable.record() }
            }.get()
        } else {
            sourceRecord = SourceRecord(size: source.length)
        }
        var fields = plan.request.fields.creationFields
        if core.configuration.sendsDigest, control.stop == nil, !fields.contains("Repr-Digest"),
            let digest = try await wholeDigest()
        {
            fields.append("Repr-Digest", digest)
        }
        machine = UploadDriver.machine(for: plan, core, fields: fields)
    }

    private static func machine(
        for plan: UploadPlan, _ core: ClientCore, fields: Fields
    ) -> ClientUpload {
        let configuration = core.configuration
        let target = RequestURI(plan.request.uri)
        let method = plan.request.method == .get ? Method.post : plan.request.method
        let intent = UploadIntent(
            dialect: configuration.dialect, style: style(for: plan, core), method: method, length: plan.length,
            maximumContent: [configuration.maximumContent, target.flatMap { core.servers.maximumAppend($0) }]
                .compactMap { $0 }.min(), fields: fields,
            allowsOtherOrigin: configuration.allowsOtherOrigin)
        let random: @Sendable () -> Double = { Double.random(in: 0..<1) }
        guard let resumed = plan.resumed else {
            return ClientUpload(intent, retry: configuration.retry, random: random)
        }
        return ClientUpload(resuming: resumed.resumption, intent: intent, retry: configuration.retry, random: random)
    }

    /// How the upload is begun; a target that has answered is not asked again for its limits.
    private static func style(for plan: UploadPlan, _ core: ClientCore) -> CreationStyle {
        let style = core.configuration.creation
        guard style == .automatic, let length = plan.length, length > CreationStyle.maxSizeWithoutDiscovery,
            let target = RequestURI(plan.request.uri), let isSupported = core.servers.supportsResumption(target)
        else { return style }
        return isSupported ? .careful : .optimistic
    }

    // MARK: The loop

    private func transfer() async throws(TransferError) -> UploadResult {
        var isCancelling = false
        while true {
            if !isCancelling, let stop = control.stop, !isOver {
                switch stop {
                case .pause: throw TransferError(.paused, "The upload was paused.")
                case .cancel(deleting: false): throw TransferError(.cancelled, "The upload was cancelled.")
                case .cancel(deleting: true):
                    isCancelling = true
                    machine.cancel()
                }
            }
            switch machine.next(now: SystemClock.realtimeSeconds()) {
            case .send(let request):
                try await perform(request, isCancelling: isCancelling)
            case .wait(let duration, let reason):
                isResuming = true
                control.events.send(.interrupted(error(of: reason), retryIn: duration))
                if isCancelling {
                    // A wish to stop is there already; nothing more can end this wait.
                    try? await Task.sleep(for: duration)
                } else {
                    await control.sleep(for: duration)
                }
            case .finished(let outcome):
                return finish(outcome)
            case .failed(let failure):
                throw error(of: failure)
            }
        }
    }

    /// Whether the machine has nothing more to do: an answer that came before the wish to stop counts.
    private var isOver: Bool {
        guard requests > 0 else { return false }
        var ahead = machine
        return switch ahead.next(now: SystemClock.realtimeSeconds()) {
        case .finished, .failed: true
        case .send, .wait: false
        }
    }

    private func finish(_ outcome: UploadOutcome) -> UploadResult {
        let uploadURI = machine.resumption?.uri ?? told?.uri
        let head = outcome.response
        var location: String?
        if let head, let base = lastBase {
            let names = [head.fields.values("Location"), head.fields.values("Content-Location")]
            location = names.compactMap { $0.count == 1 ? base.resolving($0[0])?.text : nil }.first { $0 != uploadURI }
        }
        // An answer of the application that is no success may have come before the end of the content.
        let isWhole = outcome.isResponseLost || head?.status.isSuccessful == true
        let total = plan.length ?? max(position, machine.acknowledged)
        if isWhole {
            progress.update(completed: total, total: total)
            progress.finish()
            tellProgress(sent: total, acknowledged: total)
        }
        return UploadResult(
            status: head?.status ?? response?.status, fields: head?.fields ?? response?.fields ?? Fields(),
            content: response?.content ?? [], location: location, isResponseLost: outcome.isResponseLost,
            uploadURI: uploadURI, sent: sent, acknowledged: isWhole ? total : machine.acknowledged, requests: requests)
    }

    /// Against which references in the last response are resolved.
    var lastBase: RequestURI?

    // MARK: What is told

    func tellProgress(sent: Int64, acknowledged: Int64) {
        // What the kernel still holds may never arrive; what it does not hold any more has arrived somewhere.
        let done = max(progress.completedUnitCount, acknowledged, sent - (4 << 20))
        progress.update(completed: done, total: plan.length)
        control.events.send(.progress(sent: sent, acknowledged: acknowledged, total: plan.length))
    }

    /// Keeps what could be resumed, and tells it if a later process needs to know more than before.
    func keepCheckpoint() async {
        guard let resumption = machine.resumption else {
            if told != nil { control.keep(nil, isNews: false) }
            return
        }
        let isNews = told.map { !resumption.saysTheSame(as: $0) } ?? true
        if isNews { told = resumption }
        let record = plan.record(
            of: UploadRecord(resumption: resumption, source: sourceRecord), generation: plan.generation,
            hasTicket: false)
        let data = try? ResumeData(record)
        control.keep(data, isNews: false)
        guard isNews else { return }
        await claimNew()
        if let data { await core.configuration.checkpointed?(data) }
        control.keep(data, isNews: true)
    }

    /// Keeps other transfers from resuming a checkpoint of this one while it runs, if anybody is to save one.
    private func claimNew() async {
        guard claim == nil, core.configuration.checkpointed != nil else { return }
        claim = try? await core.claim(plan.id, generation: plan.generation, hasTicket: false, createsFile: true)
    }

    /// The error with data to resume with, where there is something to resume.
    private func withResumeData(_ error: TransferError) -> TransferError {
        var error = error
        let isForgotten = [.cancelled, .gone, .sourceChanged, .digestMismatch].contains(error.code)
        let resumption = machine.resumption ?? (requests == 0 ? plan.resumed?.resumption : nil)
        guard !isForgotten, plan.isResumable, let resumption else {
            control.keep(nil, isNews: false)
            if isForgotten || plan.isResumable { claim?.remove() }
            return error
        }
        let ticket = core.issueTicket(for: plan.id, generation: plan.generation + 1)
        let record = plan.record(
            of: UploadRecord(resumption: resumption, source: sourceRecord),
            generation: ticket?.generation ?? plan.generation, hasTicket: ticket != nil)
        error.resumeData = try? ResumeData(record)
        return error
    }
}
