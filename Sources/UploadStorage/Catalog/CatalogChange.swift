import HTTPSemantics
import ResumableUpload
import SystemCalls

/// One change of the catalog, made completely or not at all.
///
/// A change with an epoch, except a removal, applies only to an unfinished upload whose row has no higher epoch. In all
/// other cases it changes nothing and fails with ``StoreError/superseded``.
package indirect enum CatalogChange: Sendable {
    /// Records a new upload. If it was completed before it had a row, `file` is the file that it published.
    case insert(CatalogRow, file: FileRecord? = nil)
    case advance(Advance)
    /// Records that the target resource is about to process the upload, so that the target does not run again after a
    /// crash.
    case markProcessing(UploadID, epoch: Int64)
    /// Records that a publication was decided, with its intent.
    case recordIntent(UploadID, epoch: Int64, PublicationIntent)
    /// Records that the decided publication could not be made durable: its names are restored, and it is not tried
    /// again.
    case withdraw(UploadID, epoch: Int64)
    case complete(Completion)
    case invalidate(Invalidation)
    /// Removes rows of unfinished and finished uploads, except those with a higher epoch. In a shared catalog this fails
    /// with ``StoreError/heldElsewhere``, and removes nothing, if another store has become the holder of one of them.
    case delete([Removal])
    /// Removes finished uploads that have expired, the oldest first, at most `limit`.
    case removeFinished(expiredBy: Int64, limit: Int)
    /// Records a published file. `ending` removes the row of the plain upload that created the file.
    case recordFile(FileRecord, ending: Removal?)
    case removeFiles([String])
    case recordTime(LifetimeClock.Mark)
    /// Sets times of expiry that are later than this time to this time, for at most `limit` finished and `limit`
    /// unfinished uploads.
    case limitExpiry(to: Int64, limit: Int)
    /// Makes a change without effect, to test whether changes can be made durable.
    case probe
    /// Makes a change and records events in the outbox, unless the change fails.
    case reporting(CatalogChange, [UploadEvent])
    /// Makes a change and gives bytes a name, or does neither. Only for a catalog whose blob area is not a
    /// ``PublishingBlobArea``.
    case naming(CatalogChange, Naming)
    case outbox(OutboxChange)

    /// A name that the bytes of an upload get in the change that ends the upload.
    package enum Naming: Sendable {
        /// Publishes the bytes as a file, whose record is that of the change. The directory of the name exists.
        /// `replaced` is the entity tag of the file that is replaced; `nil` if no file may have the name. If the name
        /// belongs to anything else, the change fails with `preconditionFailed`, `targetIsDirectory` or `parentIsFile`.
        case file(PublishedName, PublishedFile.Attributes, blob: String, replaced: String?)
        /// Keeps the bytes as the request `key` for the operator. If they are not `size` bytes, the change fails with
        /// `stateLost`.
        case retained(key: String, description: [UInt8], blob: String, size: Int64)
    }

    /// A change of the outbox, which never fails. The events are named by their numbers.
    package enum OutboxChange: Sendable {
        /// Removes events that were delivered.
        case remove([Int64])
        case setAside([Int64])
        /// Examines the `limit` oldest events, or the `limit` oldest events that are set aside, and removes those that
        /// are older than this time, in milliseconds since 1970.
        case drop(before: Int64, limit: Int, isOnlySetAside: Bool)
    }

    package struct Removal: Sendable {
        package var id: UploadID
        package var epoch: Int64
        /// The event that is recorded in the outbox if the upload was unfinished.
        package var event: UploadEvent?
    }

    /// Records that the bytes up to `offset` are durable, and sets the phase to receiving. The offset never decreases.
    package struct Advance: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var offset: Int64
        package var length: Int64?
        package var digestStates: [[UInt8]]
    }

    /// Completes an upload with its final response, and with the published file that the quota counts from now on.
    package struct Completion: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var offset: Int64
        package var response: Response
        package var expiresAt: Int64?
        package var file: FileRecord?
        /// The properties that are kept after the end of the upload.
        package var upload: NewUpload
    }

    /// Marks an upload as invalid: no request can continue it.
    package struct Invalidation: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var reason: String
        package var expiresAt: Int64?
        /// The properties that are kept after the end of the upload.
        package var upload: NewUpload
    }
}

extension CatalogChange {
    /// Whether the change may record events.
    package var canRecordEvents: Bool {
        switch self {
        case .reporting: true
        case .naming(let change, _): change.canRecordEvents
        case .delete(let removals): removals.contains { $0.event != nil }
        default: false
        }
    }
}

extension CatalogChange {
    /// Whether a row shows that this change was made. After a commit that failed, this decides whether the failure is
    /// ignored. False for a change that can be repeated.
    /// - Parameter row: the row of the upload; nil if there is none.
    func isMade(in row: CatalogRow?) -> Bool {
        switch self {
        case .recordIntent(_, _, let intent): row?.intent == intent
        case .withdraw: row?.isWithdrawn ?? false
        case .complete(let completion): row?.phase == .complete(completion.response)
        case .invalidate(let invalidation): row?.phase == .invalid(reason: invalidation.reason)
        case .delete, .recordFile(_, ending: .some): row == nil
        default: false
        }
    }
}

extension CatalogRow {
    /// Applies an advance, a mark of processing, an intent, a withdrawal or an end to this row, as the catalog does. Other
    /// changes have no effect.
    mutating func apply(_ change: CatalogChange) {
        switch change {
        case .advance(let advance):
            epoch = advance.epoch
            offset = max(offset, advance.offset)
            length = advance.length ?? length
            digestStates = advance.digestStates
            phase = .receiving
        case .markProcessing(_, let epoch):
            self.epoch = epoch
            phase = .processing
        case .recordIntent(_, let epoch, let intent):
            self.epoch = epoch
            phase = .processing
            self.intent = intent
        case .withdraw(_, let epoch):
            self.epoch = epoch
            isWithdrawn = true
        case .complete(let completion):
            offset = max(offset, completion.offset)
            end(
                as: .complete(completion.response), epoch: completion.epoch, expiresAt: completion.expiresAt,
                upload: completion.upload)
        case .invalidate(let invalidation):
            end(
                as: .invalid(reason: invalidation.reason), epoch: invalidation.epoch,
                expiresAt: invalidation.expiresAt, upload: invalidation.upload)
        case .insert, .delete, .removeFinished, .recordFile, .removeFiles, .recordTime, .limitExpiry, .probe,
            .reporting, .naming, .outbox:
            break
        }
    }

    private mutating func end(as phase: UploadRecord.Phase, epoch: Int64, expiresAt: Int64?, upload: NewUpload) {
        (self.phase, self.epoch, self.expiresAt, self.upload) = (phase, epoch, expiresAt, upload)
        (intent, isWithdrawn, digestStates) = (nil, false, [])
    }
}

extension UploadEvent {
    private static let metadata = ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"]
    /// The maximum numbers of bytes of the target and of all metadata, so that the size of the outbox is limited.
    private static let maxTarget = 2048
    private static let maxMetadata = 2048

    /// - Parameters:
    ///   - row: the upload before its end, with its fields.
    ///   - time: the time of the event, in milliseconds since 1970.
    ///   - length: the length, if it is not the length of the row.
    init(
        _ kind: Kind, of row: CatalogRow, at time: Int64, length: Int64? = nil, status: Int? = nil,
        file: FileRecord? = nil
    ) {
        let upload = row.upload
        let path = upload.target.prefix { $0 != "?" }
        var fields = Fields()
        var size = 0
        for name in Self.metadata {
            for value in upload.fields.values(name) where size + value.utf8.count <= Self.maxMetadata {
                fields.append(name, value)
                size += value.utf8.count
            }
        }
        self.init(
            id: UploadID().text, kind: kind, time: time, upload: row.id.fingerprint, principal: upload.principal,
            method: upload.method.rawValue,
            target: path.utf8.count <= Self.maxTarget
                ? String(path) : String(decoding: path.utf8.prefix(Self.maxTarget), as: UTF8.self),
            length: length ?? row.length, status: status, file: file?.name, fields: fields)
    }

    /// The event of an upload that ends in this phase; `nil` if an upload in this phase has not ended.
    init?(
        endOf row: CatalogRow, as phase: UploadRecord.Phase, at time: Int64, length: Int64? = nil,
        file: FileRecord? = nil
    ) {
        switch phase {
        case .receiving, .processing: return nil
        case .complete(let response):
            self.init(
                response.status.rawValue < 400 ? .completed : .refused, of: row, at: time, length: length,
                status: response.status.rawValue, file: file)
        case .invalid(let reason):
            self.init(.refused, of: row, at: time, length: length)
            self.reason = reason
        }
    }
}
