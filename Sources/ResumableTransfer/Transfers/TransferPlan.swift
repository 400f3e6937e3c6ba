import Foundation
import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

/// The plan of a transfer: its request, its source or destination, and the checkpoint that it resumes.
struct TransferPlan<Operation: TransferOperation>: Sendable {
    let request: TransferRequest
    /// The URI of the request; `nil` if it is not an absolute http or https URI.
    let target: RequestURI?
    /// The source of an upload, or the destination of a download.
    let input: Operation.Input
    /// Identifies the transfer through all its resumptions.
    let id: UUID
    /// The generation of the last ticket that was issued for the transfer.
    let generation: Int
    /// The time at which the transfer was created, in seconds since 1970.
    let createdAt: Int64
    /// Whether the data that is resumed has a ticket.
    let hasTicket: Bool
    /// The checkpoint in the resume data; `nil` for a new transfer.
    let resumed: Operation.Checkpoint?

    /// A new transfer.
    /// - Parameter target: the parsed URI of the request, if the caller has it.
    init(_ request: TransferRequest, target: RequestURI? = nil, _ input: Operation.Input) {
        self.request = request
        self.target = target ?? RequestURI(request.uri)
        self.input = input
        id = .random()
        generation = 0
        createdAt = SystemClock.realtimeSeconds()
        hasTicket = false
        resumed = nil
    }

    /// A transfer that is resumed.
    /// - Parameters:
    ///   - checkpoint: the content of `saved`.
    ///   - request: replaces the request in `saved`, except for the expected digests if it has none.
    init(
        resuming saved: ResumeRecord, _ checkpoint: Operation.Checkpoint, request: TransferRequest?,
        _ input: Operation.Input
    ) {
        let first = saved.request.transferRequest
        var current = request ?? first
        if current.expectedDigests.isEmpty { current.expectedDigests = first.expectedDigests }
        self.request = current
        target = RequestURI(current.uri)
        self.input = input
        id = saved.id
        generation = saved.generation
        createdAt = saved.createdAt
        hasTicket = saved.hasTicket
        resumed = checkpoint
    }

    /// The data that is resumed; `nil` for a new transfer.
    var data: ResumeData? { resumed.flatMap { try? data(of: $0, generation: generation, hasTicket: hasTicket) } }

    /// The data that is resumed, without its ticket: callers can resume the transfer with it before anything is sent.
    var checkpoint: ResumeData? { resumed.flatMap { data(of: $0) } }

    /// Data without a ticket.
    func data(of checkpoint: Operation.Checkpoint) -> ResumeData? {
        try? data(of: checkpoint, generation: generation, hasTicket: false)
    }

    func data(
        of checkpoint: Operation.Checkpoint, generation: Int, hasTicket: Bool
    ) throws(TransferError) -> ResumeData {
        try ResumeData(
            ResumeRecord(
                id: id, generation: generation, createdAt: createdAt, hasTicket: hasTicket,
                request: ResumeRecord.Request(request, uri: target), content: checkpoint.content))
    }
}

extension UUID {
    /// A random UUID (RFC 9562 section 5.4). Foundation's `UUID()` opens a file for each UUID.
    static func random() -> UUID {
        let generator = KernelRandom()
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            for index in stride(from: 0, to: bytes.count, by: 8) {
                bytes.storeBytes(of: generator.next(), toByteOffset: index, as: UInt64.self)
            }
        }
        bytes.6 = bytes.6 & 0x0F | 0x40
        bytes.8 = bytes.8 & 0x3F | 0x80
        return UUID(uuid: bytes)
    }
}

/// Saves the data that a later process needs to resume one transfer.
package protocol CheckpointStore: Sendable {
    /// Saves a checkpoint, or the resume data of a transfer that has failed, in place of the previous data. The
    /// transfer waits until this returns.
    /// - Parameter sent: the position up to which an upload has sent bytes; `nil` for a download.
    func save(_ data: ResumeData, sent: Int64?) async

    /// Called once, when all work of the transfer has ended and before its result is returned.
    /// - Parameter error: the error with which the transfer has failed; `nil` if it has succeeded.
    func ended(_ error: TransferError?) async

    /// Discards the transfer, which has ended, and what the store has saved.
    /// - Parameters:
    ///   - data: the resume data of the error with which the transfer has ended.
    ///   - request: the request of the transfer.
    /// - Throws: an error if the deletion failed. In this case everything is kept.
    func discard(_ data: ResumeData, request: TransferRequest) async throws(TransferError)
}

extension CheckpointStore {
    package func ended(_ error: TransferError?) async {}

    package func discard(_ data: ResumeData, request: TransferRequest) async throws(TransferError) {
        throw TransferError(.storageUnusable, "This store cannot discard transfers.")
    }
}
