import HTTPSemantics
import ResumableUpload
import SystemCalls

/// A change of an upload that is reported to other programs. It is recorded in the transaction that makes the change.
public struct UploadEvent: Sendable, Hashable {
    /// The kind of change that an event reports.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The upload resource was created.
        case created
        /// The upload was completed, and its target has responded with a status of 2xx or 3xx.
        case completed
        /// The upload has ended without success: its target has responded with a status of 4xx or 5xx, or the upload can
        /// no longer be continued.
        case refused
        /// The client has removed the unfinished upload.
        case canceled
        /// The unfinished upload was removed because it has expired.
        case expired
    }

    /// A random text, the same in every delivery of this event: 32 lower-case hexadecimal digits.
    public var id: String
    /// The kind of the event.
    public var kind: Kind
    /// The time of the event, in milliseconds since 1970.
    public var time: Int64
    /// A text that identifies the upload, and from which its URL cannot be derived: 32 lower-case hexadecimal digits.
    public var upload: String
    /// The principal of the upload.
    public var principal: String
    /// The method of the request that created the upload.
    public var method: String
    /// The path of the target, without the query.
    public var target: String
    /// The length of the complete representation in bytes; `nil` if it is not known.
    public var length: Int64?
    /// The status of the final response; `nil` if there is none.
    public var status: Int?
    /// The path of the published file below the directory of files, without a slash at the beginning; `nil` if no file
    /// was published.
    public var file: String?
    /// The reason why the upload became unusable; `nil` for all other events.
    public var reason: String?
    /// The representation metadata of the upload: `Content-Type`, `Content-Encoding`, `Content-Language` and
    /// `Content-Disposition`.
    public var fields: Fields

    /// Creates an event. The parameters are described at the properties.
    public init(
        id: String, kind: Kind, time: Int64, upload: String, principal: String, method: String, target: String,
        length: Int64? = nil, status: Int? = nil, file: String? = nil, reason: String? = nil, fields: Fields = [:]
    ) {
        self.id = id
        self.kind = kind
        self.time = time
        self.upload = upload
        self.principal = principal
        self.method = method
        self.target = target
        self.length = length
        self.status = status
        self.file = file
        self.reason = reason
        self.fields = fields
    }
}

/// An event in the outbox: recorded, and neither delivered nor dropped.
package struct OutboxEntry: Sendable, Hashable {
    /// The position in the outbox. Later events have higher numbers.
    package var number: Int64
    package var event: UploadEvent
    package var state: State

    package init(number: Int64, event: UploadEvent, state: State) {
        self.number = number
        self.event = event
        self.state = state
    }

    package enum State: Int64, Sendable, Hashable {
        case waiting = 0
        /// The event could not be delivered in time, and the server does not try again.
        case setAside = 1
        /// The event was set aside, and an operator has requested another attempt.
        case retried = 2
    }
}

/// The recorded events of a store, for a process other than the server. The server can be running.
package protocol EventRecords {
    /// Calls `body` for each event in the order of the numbers.
    func forEach(_ body: (OutboxEntry) -> Void) throws(StoreError)
    /// Requests another attempt for events that are set aside. The others do not change.
    func retry(_ numbers: [Int64]) throws(StoreError)
    /// Removes events. They are never delivered.
    func drop(_ numbers: [Int64]) throws(StoreError)
}

/// The numbers of events. ``recorded``, ``delivered``, ``failedAttempts`` and ``dropped`` count since the store was opened.
package struct OutboxStatistics: Sendable, Hashable {
    /// Events that wait for their delivery; `nil` until they are counted.
    package var waiting: Int?
    package var setAside = 0
    /// The time of the oldest event that waits, in milliseconds since 1970; `nil` if there is none.
    package var oldest: Int64?
    package var recorded = 0
    package var delivered = 0
    package var failedAttempts = 0
    package var dropped = 0

    package init() {}
}
