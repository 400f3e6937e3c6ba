import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// What an upload shall do, before anything was sent.
struct UploadPlan: Sendable {
    let request: TransferRequest
    let source: any UploadSource
    /// Of the transfer, through all its resumptions.
    let id: UUID
    /// Of the last ticket that was issued for it.
    let generation: Int
    /// Seconds since 1970.
    let createdAt: Int64
    /// Whether the data that is resumed has a ticket.
    let hasTicket: Bool
    /// What is known of the upload resource; `nil` for a new upload.
    let resumed: UploadRecord?
    /// Whether an error carries data to resume with.
    let isResumable: Bool

    init(request: TransferRequest, source: any UploadSource) {
        self.request = request
        self.source = source
        id = UUID()
        generation = 0
        createdAt = SystemClock.realtimeSeconds()
        hasTicket = false
        resumed = nil
        isResumable = true
    }

    /// The rest of an upload. The source is opened and compared with the one that the data was made of.
    init(
        resuming data: ResumeData, source: (any UploadSource)?, request: TransferRequest?
    ) throws(TransferError) {
        guard case .upload(let record) = data.record.content else {
            throw TransferError(.resumeDataInvalid, "This resume data is not that of an upload.")
        }
        let opened: any UploadSource = if let source { source } else { try UploadPlan.openSource(of: record) }
        let found = try (opened as? any RecognizableSource)?.record() ?? SourceRecord(size: opened.length)
        let differences = record.source.differences(from: found)
        guard differences.isEmpty else {
            throw TransferError(
                .sourceChanged,
                "The source has changed since the upload was interrupted (\(differences.joined(separator: ", "))).")
        }
        self.init(data.record, record, source: opened, request: request, isResumable: true)
    }

    /// For the deletion of the upload resource, which needs no source.
    init(discarding data: ResumeData, request: TransferRequest?) throws(TransferError) {
        guard case .upload(let record) = data.record.content else {
            throw TransferError(.resumeDataInvalid, "This resume data is not that of an upload.")
        }
        self.init(data.record, record, source: DataSource(Data()), request: request, isResumable: false)
    }

    private init(
        _ record: ResumeRecord, _ upload: UploadRecord, source: any UploadSource, request: TransferRequest?,
        isResumable: Bool
    ) {
        self.request = request ?? record.request.transferRequest
        self.source = source
        id = record.id
        generation = record.generation
        createdAt = record.createdAt
        hasTicket = record.hasTicket
        resumed = upload
        self.isResumable = isResumable
    }

    private static func openSource(of record: UploadRecord) throws(TransferError) -> any UploadSource {
        guard let file = record.source.file else {
            throw TransferError(.noSuchSource, "The upload was not one of a file: give its source.")
        }
        return try FileSource(recorded: file)
    }

    /// Bytes of the whole representation; `nil` while it is unknown.
    var length: Int64? { source.length ?? resumed?.resumption.length }

    /// The data that is resumed; `nil` for a new transfer.
    var data: ResumeData? {
        resumed.flatMap { try? ResumeData(record(of: $0, generation: generation, hasTicket: hasTicket)) }
    }

    /// What could be resumed before anything was sent.
    var checkpoint: ResumeData? {
        resumed.flatMap { try? ResumeData(record(of: $0, generation: generation, hasTicket: false)) }
    }

    func record(of upload: UploadRecord, generation: Int, hasTicket: Bool) -> ResumeRecord {
        ResumeRecord(
            id: id, generation: generation, createdAt: createdAt, hasTicket: hasTicket,
            request: ResumeRecord.Request(request), content: .upload(upload))
    }
}
