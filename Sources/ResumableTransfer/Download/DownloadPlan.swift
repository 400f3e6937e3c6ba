import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// What a download shall do, before anything was sent.
struct DownloadPlan: Sendable {
    let request: TransferRequest
    /// With an absolute path.
    let destination: DownloadDestination
    /// Of the transfer, through all its resumptions.
    let id: UUID
    /// Of the last ticket that was issued for it.
    let generation: Int
    /// Seconds since 1970.
    let createdAt: Int64
    /// Whether the data that is resumed has a ticket.
    let hasTicket: Bool
    /// What is known of the bytes at hand; `nil` for a new download.
    let resumed: DownloadRecord?

    init(request: TransferRequest, destination: DownloadDestination) {
        self.request = request
        self.destination =
            switch destination {
            case .file(let path) where !path.isAbsolute:
                .file((try? FilePath(".").resolved())?.appending(path) ?? path)
            case .file, .temporary: destination
            }
        id = UUID()
        generation = 0
        createdAt = SystemClock.realtimeSeconds()
        hasTicket = false
        resumed = nil
    }

    /// The rest of a download.
    init(resuming data: ResumeData, request: TransferRequest?) throws(TransferError) {
        guard case .download(let record) = data.record.content else {
            throw TransferError(.resumeDataInvalid, "This resume data is not that of a download.")
        }
        self.request = request ?? data.record.request.transferRequest
        destination = DownloadDestination(record)
        id = data.record.id
        generation = data.record.generation
        createdAt = data.record.createdAt
        hasTicket = data.record.hasTicket
        resumed = record
    }

    /// The data that is resumed; `nil` for a new transfer.
    var data: ResumeData? {
        resumed.flatMap { try? ResumeData(record(of: $0, generation: generation, hasTicket: hasTicket)) }
    }

    /// What could be resumed before anything was sent.
    var checkpoint: ResumeData? {
        resumed.flatMap { try? ResumeData(record(of: $0, generation: generation, hasTicket: false)) }
    }

    func record(of download: DownloadRecord, generation: Int, hasTicket: Bool) -> ResumeRecord {
        ResumeRecord(
            id: id, generation: generation, createdAt: createdAt, hasTicket: hasTicket,
            request: ResumeRecord.Request(request), content: .download(download))
    }
}

extension DownloadDestination {
    init(_ record: DownloadRecord) {
        self = record.destination.map { .file($0) } ?? .temporary
    }
}
