import HTTPTransport
import Digests
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The operation of an upload. It connects the protocol's state machine, which makes all decisions, with the transport
/// and the source.
final class UploadOperation: TransferOperation {
    typealias Success = UploadResult
    typealias Checkpoint = UploadCheckpoint

    struct Input: Sendable {
        let source: any UploadSource
        /// Whether errors contain resume data; false for a transfer that only deletes the upload resource.
        let isResumable: Bool
    }

    static let noun = "upload"

    unowned let driver: TransferDriver<UploadOperation>
    var machine: ClientUpload
    /// Identifies the source. It is made before the first request.
    private var sourceRecord: SourceRecord
    private(set) var isDeleting = false
    /// The URI of the upload resource. It is kept after the server has deleted the resource.
    var uploadURI: String?
    /// The URI against which references in the last response are resolved.
    var lastURI: RequestURI?
    /// The number of bytes of content that all requests have passed to the kernel.
    var sent: Int64 = 0
    /// The position in the representation up to which the last request with content passed bytes to the kernel.
    var position: Int64 = 0
    /// The error of the source that ends the upload.
    var sourceError: SourceError?
    /// Whether the content of the request that is being sent waits for a 104.
    var shouldAwaitInterim = false
    /// Whether a 104 was received for this request.
    var isAnnounced = false

    /// The length of the representation in bytes; `nil` if it is unknown.
    let length: Int64?

    var source: any UploadSource { driver.plan.input.source }
    var sentPosition: Int64? { max(position, machine.acknowledged) }

    /// Whether the source is unchanged since it was opened, as far as this can be detected.
    var isSourceUnchanged: Bool { (source as? any RecognizableSource)?.isUnchanged ?? true }

    static func total(of plan: TransferPlan<UploadOperation>) -> Int64? {
        plan.input.source.length ?? plan.resumed?.resumption.length
    }

    init(driver: TransferDriver<UploadOperation>) {
        self.driver = driver
        length = Self.total(of: driver.plan)
        sourceRecord = driver.plan.resumed?.source ?? SourceRecord()
        uploadURI = driver.plan.resumed?.resumption.uri
        machine = UploadOperation.machine(for: driver.plan, driver.client, fields: driver.plan.creationFields)
    }

    // MARK: Before the first request

    func prepare() async throws(TransferError) -> UploadResult? {
        if driver.plan.resumed == nil { try await prepareNew() }
        // The checkpoint is saved before the first request, so that it supersedes the data that was resumed.
        if driver.plan.input.isResumable { await driver.keepCheckpoint() }
        return nil
    }

    private func prepareNew() async throws(TransferError) {
        if let recognizable = source as? any RecognizableSource {
            // Reading short content takes less time than waiting for another thread.
            if let length, length <= ClientRequest.maxSizeAtOnce {
                sourceRecord = try recognizable.record()
            } else {
                sourceRecord = try await BlockingWork.run { () throws(TransferError) in try recognizable.record() }
            }
        } else {
            sourceRecord = SourceRecord(size: source.length)
        }
        guard driver.client.configuration.shouldSendDigest, driver.control.stop == nil else { return }
        var fields = driver.plan.creationFields
        guard !fields.contains("Repr-Digest"), let digest = try await sourceDigest() else { return }
        fields.append("Repr-Digest", digest)
        machine = UploadOperation.machine(for: driver.plan, driver.client, fields: fields)
    }

    static func machine(
        for plan: TransferPlan<UploadOperation>, _ client: TransferClient, fields: Fields
    ) -> ClientUpload {
        let configuration = client.configuration
        let method = plan.request.method == .get ? Method.post : plan.request.method
        let intent = UploadIntent(
            dialect: configuration.dialect, style: style(for: plan, client), method: method, length: total(of: plan),
            maxRequestContentLength: [
                configuration.maxRequestContentLength, plan.target.flatMap { client.servers.maxAppend($0) },
            ]
            .compactMap { $0 }.min(), fields: fields, isOtherOriginAllowed: configuration.isOtherOriginAllowed)
        let random: @Sendable () -> Double = { Double.random(in: 0..<1) }
        guard let resumed = plan.resumed else {
            return ClientUpload(intent, retry: configuration.retry, random: random)
        }
        return ClientUpload(resuming: resumed.resumption, intent: intent, retry: configuration.retry, random: random)
    }

    /// Returns the way in which the upload is created. The limits of a known target are not requested again.
    private static func style(for plan: TransferPlan<UploadOperation>, _ client: TransferClient) -> CreationStyle {
        let style = client.configuration.creation
        guard style == .automatic, let length = total(of: plan), length > CreationStyle.maxSizeWithoutDiscovery,
            let target = plan.target, let isSupported = client.servers.isResumptionSupported(target)
        else { return style }
        return isSupported ? .careful : .optimistic
    }

    // MARK: Steps

    func handle(_ stop: StopRequest) throws(TransferError) {
        guard !isDeleting, !isOver else { return }
        if let error = error(of: stop) { throw error }
        isDeleting = true
        machine.cancel()
    }

    func error(of stop: StopRequest) -> TransferError? {
        stop == .cancel(deleting: true) ? nil : stopped(by: stop)
    }

    /// Whether the machine has ended. A response that arrived before the stop request determines the result.
    private var isOver: Bool {
        guard driver.requests > 0 else { return false }
        var ahead = machine
        return switch ahead.next(now: SystemClock.realtimeSeconds()) {
        case .finished, .failed: true
        case .send, .wait, .refreshCredentials: false
        }
    }

    // MARK: The end

    func finish(_ outcome: UploadOutcome) async throws(TransferError) -> UploadResult {
        let total = length ?? max(position, machine.acknowledged)
        (source as? any GrowingSource)?.close()
        let result = UploadResult(
            outcome, content: driver.response?.content ?? [], from: lastURI,
            uploadURI: machine.resumption?.uri ?? uploadURI, sent: sent,
            acknowledged: outcome.isComplete ? total : machine.acknowledged, requests: driver.requests)
        if outcome.isComplete {
            driver.progress.update(completed: total, total: total)
            driver.progress.finish()
            driver.control.events.send(.progress(sent: total, acknowledged: total, total: length))
        } else {
            reportProgress()
        }
        return result
    }

    static func rejection(of result: UploadResult) -> TransferError? {
        guard let status = result.status, status.isClientError || status.isServerError else { return nil }
        return TransferError(
            TransferError.Code(rejection: status),
            "The server rejected the upload (\(status)).",
            response: TransferResponse(status: status, fields: result.fields, content: result.content))
    }

    func reportProgress() {
        let acknowledged = machine.acknowledged
        let sent = max(position, acknowledged)
        // The last 4 MiB may still be in the kernel's buffer, and may never arrive. Bytes that have left the buffer
        // have arrived at the next hop.
        let done = max(driver.progress.completedUnitCount, acknowledged, sent - (4 << 20))
        driver.progress.update(completed: done, total: length)
        driver.control.events.send(.progress(sent: sent, acknowledged: acknowledged, total: length))
    }

    func error(of failure: ClientFailure) -> TransferError? {
        switch failure {
        case .canceled: deletionError
        case .sourceUnavailable(let offset) where (source as? any GrowingSource)?.failure != nil:
            TransferError(
                .sourceUnavailable, "The sequence of the upload's bytes ended with an error after offset \(offset).",
                underlying: (source as? any GrowingSource)?.failure)
        case .sourceUnavailable where !isSourceUnchanged:
            TransferError(.changed, at: machine.acknowledged)
        case .sourceUnavailable(let offset): sourceError.map { TransferError($0, at: offset) }
        default: nil
        }
    }

    /// The error of an upload that was canceled.
    private var deletionError: TransferError {
        let isResumable = driver.plan.input.isResumable
        guard machine.resumption != nil else {
            return TransferError(
                .cancelled, "The upload was canceled.", response: isResumable ? nil : driver.response)
        }
        return isResumable ? unconfirmedDeletion.asUnconfirmedDeletion(noun: Self.noun) : unconfirmedDeletion
    }

    /// The reason why the server did not confirm the deletion of the upload resource.
    private var unconfirmedDeletion: TransferError {
        guard driver.lastFailure == nil, let response = driver.response else {
            return driver.lastFailure ?? TransferError(.connectionLost, "The connection was lost.")
        }
        let status = response.status
        return TransferError(
            status.isUnauthorized ? .unauthorized : status.isTransient ? .serverUnavailable : .refused,
            "The server did not delete the upload (\(status)).", response: response)
    }

    var checkpoint: UploadCheckpoint? {
        machine.resumption.map { UploadCheckpoint(resumption: $0, source: sourceRecord) }
    }

    func conclude(_ error: TransferError) async -> TransferConclusion<UploadCheckpoint> {
        // After a deletion that was not confirmed, the data is kept to try the deletion again.
        let isCanceled = error.code == .cancelled
        let isDiscarded =
            [.gone, .sourceChanged, .digestMismatch].contains(error.code)
            || (isCanceled && !(isDeleting && machine.resumption != nil))
        if isCanceled { (source as? any GrowingSource)?.close() }
        let resumption = machine.resumption ?? (driver.requests == 0 ? driver.plan.resumed?.resumption : nil)
        guard !isDiscarded, driver.plan.input.isResumable, let resumption else {
            if isDiscarded || !error.canRetry { (source as? any GrowingSource)?.close() }
            return isDiscarded || driver.plan.input.isResumable ? .over : .nothing
        }
        return .resumable(UploadCheckpoint(resumption: resumption, source: sourceRecord))
    }

    func close() {}
}

extension TransferPlan<UploadOperation> {
    /// The caller's fields of the request that creates the upload.
    var creationFields: Fields {
        var fields = request.fields.creationFields
        if let digest = request.digestField { fields.set("Repr-Digest", digest.serialized) }
        return fields
    }

    init(_ request: TransferRequest, target: RequestURI?, from source: any UploadSource) {
        self.init(request, target: target, UploadOperation.Input(source: source, isResumable: true))
    }

    /// Plans the resumption of an upload. The source is opened and compared with the record in the data.
    init(
        resuming data: ResumeData, source: (any UploadSource)?, request: TransferRequest?
    ) throws(TransferError) {
        let checkpoint = try Self.uploadCheckpoint(of: data)
        let opened: any UploadSource = if let source { source } else { try Self.openSource(of: checkpoint) }
        let found = try (opened as? any RecognizableSource)?.record() ?? SourceRecord(size: opened.length)
        let differences = checkpoint.source.differences(from: found)
        guard differences.isEmpty else {
            throw TransferError(
                .sourceChanged,
                "The source has changed since its upload began (\(differences.joined(separator: ", "))).")
        }
        self.init(
            resuming: data.record, checkpoint, request: request,
            UploadOperation.Input(source: opened, isResumable: true))
    }

    /// Plans the deletion of an upload resource, which needs no source.
    init(discarding data: ResumeData, request: TransferRequest?) throws(TransferError) {
        let checkpoint = try Self.uploadCheckpoint(of: data)
        self.init(
            resuming: data.record, checkpoint, request: request,
            UploadOperation.Input(source: DataSource(Data()), isResumable: false))
    }

    private static func uploadCheckpoint(of data: ResumeData) throws(TransferError) -> UploadCheckpoint {
        if case .upload(let checkpoint) = data.record.content { return checkpoint }
        throw TransferError(.resumeDataInvalid, "This is not the resume data of an upload.")
    }

    private static func openSource(of checkpoint: UploadCheckpoint) throws(TransferError) -> any UploadSource {
        guard let file = checkpoint.source.file else {
            throw TransferError(.noSuchSource, "The source of the upload was not a file: pass the source again.")
        }
        return try FileSource(recorded: file)
    }
}

extension UploadOperation {
    /// The value of `Repr-Digest` for the entire source; `nil` if a stop was requested, or if the length is unknown,
    /// because such a source may not be readable twice.
    func sourceDigest() async throws(TransferError) -> String? {
        guard let length = source.length else { return nil }
        let flag = StopFlag()
        let source = source
        let result = await driver.control.interruptible(
            by: { flag.raise() },
            while: { await BlockingWork.run { Self.digest(of: source, length: length, until: flag) } })
        return try result.get().map { DigestField(values: [(.sha256, $0)]).serialized }
    }

    private static func digest(
        of source: any UploadSource, length: Int64, until flag: StopFlag
    ) -> Result<[UInt8]?, TransferError> {
        var digest = RunningDigest(.sha256)
        do throws(TransferError) {
            let isRead = try flag.readAll(length) { buffer, offset throws(TransferError) in
                do throws(SourceError) {
                    let count = try source.read(into: buffer, at: offset)
                    // The source has fewer bytes than its length.
                    guard count > 0 else { throw .changed }
                    return count
                } catch {
                    throw TransferError(error, at: offset)
                }
            } body: {
                digest.update($0)
            }
            return .success(isRead ? digest.finalized() : nil)
        } catch {
            return .failure(error)
        }
    }
}
