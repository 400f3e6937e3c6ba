import HTTPSemantics
import StructuredFields

/// The limits of an upload as `Upload-Limit` announces them (draft section 4.1.4).
///
/// Sizes are bytes of the representation, ages are seconds. `nil` means that there is no such limit.
public struct UploadLimits: Sendable, Hashable, Codable {
    /// The largest Integer of RFC 9651, and so the largest offset, length or limit.
    public static let largestInteger: Int64 = 999_999_999_999_999

    /// The maximum size of the representation in bytes (`max-size`).
    public var maxSize: Int64?
    /// The minimum size of the representation in bytes (`min-size`).
    public var minSize: Int64?
    /// The maximum content of one request in bytes (`max-append-size`).
    public var maxAppendSize: Int64?
    /// The minimum content in bytes of a request that does not complete the upload (`min-append-size`).
    public var minAppendSize: Int64?
    /// The lifetime of an upload in seconds: the complete lifetime in the limits with which an upload is created, the
    /// remaining lifetime in the limits that a response announces.
    public var maxAge: Int64?

    /// Creates limits; by default there are none.
    public init(
        maxSize: Int64? = nil, minSize: Int64? = nil, maxAppendSize: Int64? = nil, minAppendSize: Int64? = nil,
        maxAge: Int64? = nil
    ) {
        self.maxSize = maxSize
        self.minSize = minSize
        self.maxAppendSize = maxAppendSize
        self.minAppendSize = minAppendSize
        self.maxAge = maxAge
    }

    /// The maximum size of a representation in bytes. Without a configured maximum it is the largest value that the
    /// fields can express.
    public var effectiveMaxSize: Int64 { min(maxSize ?? Self.largestInteger, Self.largestInteger) }

    /// The same limits with a remaining lifetime of `seconds`; negative values count as zero.
    public func remaining(_ seconds: Int64?) -> UploadLimits {
        var limits = self
        limits.maxAge = seconds.map { max(0, $0) }
        return limits
    }

    /// The limits with which an upload satisfies both these limits and `other`.
    package func restricted(by other: UploadLimits?) -> UploadLimits {
        guard let other else { return self }
        func minimum(_ path: KeyPath<UploadLimits, Int64?>) -> Int64? {
            [self[keyPath: path], other[keyPath: path]].compactMap { $0 }.min()
        }
        func maximum(_ path: KeyPath<UploadLimits, Int64?>) -> Int64? {
            [self[keyPath: path], other[keyPath: path]].compactMap { $0 }.max()
        }
        return UploadLimits(
            maxSize: minimum(\.maxSize), minSize: maximum(\.minSize), maxAppendSize: minimum(\.maxAppendSize),
            minAppendSize: maximum(\.minAppendSize), maxAge: minimum(\.maxAge))
    }

    /// The value of `Upload-Limit`, a Dictionary of Integers; never empty: without limits it is `min-size=0`.
    package func fieldValue(for dialect: Dialect) -> String {
        var text = ""
        func add(_ key: String, _ value: Int64?) {
            guard let value else { return }
            if !text.isEmpty { text += ", " }
            text += key
            text += "="
            text += String(min(max(value, 0), Self.largestInteger))
        }
        add("max-size", maxSize)
        add("min-size", minSize)
        add("max-append-size", maxAppendSize)
        add("min-append-size", minAppendSize)
        if dialect.isExpiresKeySent { add("expires", maxAge) }
        add("max-age", maxAge)
        if text.isEmpty { add("min-size", 0) }
        return text
    }
}

extension UploadLimits {
    /// The limits that a response announces; `nil` if `Upload-Limit` is absent or malformed.
    ///
    /// Unknown keys are ignored; if the value of a known key is negative or not an Integer, the entire field is ignored
    /// (draft section 4.1.4).
    package init?(parsing fields: Fields, dialect: Dialect) {
        let lines = fields.values(UploadFieldName.limit)
        guard !lines.isEmpty, let members = try? OrderedDictionary(parsing: lines) else { return nil }
        self.init()
        var expires: Int64?
        for (key, member) in members {
            let isOldLifetimeKey = dialect.isExpiresKeySent && key == "expires"
            guard isOldLifetimeKey || Self.keys.contains(key) else { continue }
            guard case .item(let item) = member, case .integer(let value) = item.value, value >= 0 else { return nil }
            switch key {
            case "max-size": maxSize = Int64(value)
            case "min-size": minSize = Int64(value)
            case "max-append-size": maxAppendSize = Int64(value)
            case "min-append-size": minAppendSize = Int64(value)
            case "max-age": maxAge = Int64(value)
            default: expires = Int64(value)
            }
        }
        maxAge = maxAge ?? expires
    }

    private static let keys: Set<String> = ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"]
}

/// How the content of one accepted request is stored: where it starts, what its end means, and which limits it has.
package struct ContentPlan: Sendable, Hashable {
    /// The meaning of the end of the content.
    package enum Completion: Sendable, Hashable {
        /// The content is a part of the representation.
        case never
        /// The content completes the representation if it ends at the known length; otherwise it is a part.
        case atLength
        /// The request states that its content completes the representation.
        case atEnd
    }

    /// Offset of the content's first byte in the representation.
    package var start: Int64
    /// The meaning of the end of the content.
    package var completion: Completion
    /// The length of the complete representation in bytes, once known.
    package var length: Int64?
    /// The maximum size of the representation in bytes.
    package var maxSize: Int64
    /// The maximum content of this request in bytes.
    package var maxContent: Int64?
    /// Whether this request is the first that determines `length`.
    package var isLengthDetermined: Bool

    package init(
        start: Int64 = 0, completion: Completion, length: Int64? = nil, maxSize: Int64 = UploadLimits.largestInteger,
        maxContent: Int64? = nil, isLengthDetermined: Bool = false
    ) {
        self.start = start
        self.completion = completion
        self.length = length
        self.maxSize = maxSize
        self.maxContent = maxContent
        self.isLengthDetermined = isLengthDetermined
    }
}

extension ContentPlan {
    /// Whether only the end of chunked content determines the length of the representation. A proxy can make an
    /// interruption look like that end.
    package func isOpenEnded(_ framing: MessageFraming) -> Bool {
        completion == .atEnd && length == nil && framing == .chunked
    }
}

/// Counts the content of one request and compares it with its plan, because the declared length can be wrong (draft
/// section 4.4.2).
///
/// Call `receive` any number of times, then `end` once. After a verdict other than `.accept`, call neither.
package struct ContentCounter: Sendable {
    package let plan: ContentPlan
    /// The bytes of content received so far.
    package private(set) var received: Int64 = 0

    package init(_ plan: ContentPlan) { self.plan = plan }

    package enum Verdict: Sendable, Hashable {
        case accept
        /// The content exceeds the known length: the upload becomes invalid permanently.
        case exceedsLength(Int64)
        /// The representation exceeds its maximum size.
        case exceedsMaxSize(Int64)
        /// The content exceeds the maximum of one request. Only the first `accepted` of the counted bytes are stored.
        case exceedsMaxContent(Int64, accepted: Int)
    }

    /// Counts the next `count` bytes of content.
    package mutating func receive(_ count: Int) -> Verdict {
        let (total, overflow) = received.addingReportingOverflow(Int64(count))
        let (end, wraps) = plan.start.addingReportingOverflow(total)
        if let length = plan.length, overflow || wraps || end > length { return .exceedsLength(length) }
        if overflow || wraps || end > plan.maxSize { return .exceedsMaxSize(plan.maxSize) }
        if let maxContent = plan.maxContent, total > maxContent {
            let accepted = Int(maxContent - received)
            received = maxContent
            return .exceedsMaxContent(maxContent, accepted: accepted)
        }
        received = total
        return .accept
    }

    package enum End: Sendable, Hashable {
        /// A part was received; the upload continues.
        case part
        /// The representation of `length` bytes is complete.
        case complete(length: Int64)
        /// The request stated that it completes the representation, but its content ended before the known length.
        case short(length: Int64, received: Int64)
    }

    /// Evaluates the regular end of the content. Do not call it after an interruption.
    package func end() -> End {
        let total = plan.start + received
        switch plan.completion {
        case .never: return .part
        case .atLength: return plan.length == total ? .complete(length: total) : .part
        case .atEnd:
            if let length = plan.length, length != total { return .short(length: length, received: total) }
            return .complete(length: total)
        }
    }
}

/// Decides when received bytes are made durable during an upload, and when the offset is reported to the client (draft
/// sections 4.2.2 and 4.4.2).
///
/// Times are nanoseconds of a monotonic clock.
///
/// Each decision to make bytes durable costs a change of the catalog. So the intervals grow while an upload is very slow:
/// a crash can then lose the bytes of more than one `interval`, but fewer than `smallPiece` bytes.
package struct AcknowledgmentPace: Sendable {
    /// The number of received bytes after which they are made durable.
    package var step: Int64
    /// The time after which received bytes are made durable even if they are fewer than `step`. For fewer than
    /// `smallPiece` bytes, this time doubles with each such acknowledgment, up to 16 times `interval`.
    package var interval: Int64
    package var smallPiece: Int64
    /// The minimum time between two interim responses.
    package var spacing: Int64

    /// The number of offsets that may still be reported, at increasing intervals; `nil`: as many as `spacing` allows.
    package private(set) var remainingReports: Int?

    /// The current time after which fewer than `smallPiece` received bytes are made durable.
    private var smallInterval: Int64
    private static let maxDoublings: Int64 = 4

    private var requestedOffset: Int64
    private var requestedAt: Int64
    private var reportedOffset: Int64
    private var reportedAt: Int64

    package init(
        start: Int64, now: Int64, step: Int64 = 8 << 20, interval: Int64 = 1_000_000_000, smallPiece: Int64 = 64 << 10,
        spacing: Int64 = 250_000_000, maxReports: Int? = nil
    ) {
        remainingReports = maxReports
        self.step = step
        self.interval = interval
        self.smallPiece = smallPiece
        smallInterval = interval
        self.spacing = spacing
        requestedOffset = start
        requestedAt = now
        reportedOffset = start
        reportedAt = now - spacing
    }

    /// Whether to make the received bytes durable now.
    package mutating func shouldAcknowledge(received: Int64, now: Int64) -> Bool {
        let pending = received - requestedOffset
        guard pending >= step || isOverdue(received: received, durable: requestedOffset, now: now) else { return false }
        acknowledgmentBegins(received: received, now: now)
        return true
    }

    /// Whether to make the received bytes durable now although no more arrive. The last acknowledgment may have begun
    /// before they arrived.
    package func isOverdue(received: Int64, durable: Int64, now: Int64) -> Bool {
        let pending = received - durable
        return pending > 0 && now - requestedAt >= (pending < smallPiece ? smallInterval : interval)
    }

    package mutating func acknowledgmentBegins(received: Int64, now: Int64) {
        let pending = received - requestedOffset
        smallInterval = pending < smallPiece ? min(2 * smallInterval, interval << Self.maxDoublings) : interval
        requestedOffset = received
        requestedAt = now
    }

    private static let growth: Int64 = 8

    /// Whether to report the durable offset to the client now.
    package mutating func shouldReport(durable: Int64, now: Int64) -> Bool {
        guard durable > reportedOffset, now - reportedAt >= spacing, remainingReports != 0 else { return false }
        reportedOffset = durable
        reportedAt = now
        if let remainingReports {
            self.remainingReports = remainingReports - 1
            spacing *= Self.growth
        }
        return true
    }
}
