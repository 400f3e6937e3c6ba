import HTTPSemantics

/// How the content of one accepted request is taken in: where it starts, what it means when it ends, where it must stop.
package struct ContentPlan: Sendable, Hashable {
    /// Offset of the content's first byte in the representation.
    package var start: Int64
    /// When the end of the content is the end of the representation.
    package enum Completion: Sendable, Hashable {
        /// The content is a part.
        case never
        /// If the content ends at the known length; otherwise it is a part.
        case atLength
        /// Always: the request says so.
        case atEnd
    }

    /// Whether the end of the content completes the representation.
    package var completion: Completion
    /// Length of the whole representation in bytes, once known.
    package var length: Int64?
    /// Bytes that the representation may have at most.
    package var maxSize: Int64
    /// Bytes that this request's content may have at most.
    package var maxContent: Int64?
    /// What fixes `length` was told by this request and not known before.
    package var learnsLength: Bool

    package init(
        start: Int64 = 0, completion: Completion, length: Int64? = nil, maxSize: Int64 = UploadLimits.largestInteger,
        maxContent: Int64? = nil, learnsLength: Bool = false
    ) {
        self.start = start
        self.completion = completion
        self.length = length
        self.maxSize = maxSize
        self.maxContent = maxContent
        self.learnsLength = learnsLength
    }
}

extension ContentPlan {
    /// Whether nothing but the end of chunked content tells how long the representation is. A proxy on the way can make
    /// a cut look like that end.
    package func isOpenEnded(_ framing: MessageFraming) -> Bool {
        completion == .atEnd && length == nil && framing == .chunked
    }
}

/// Counts the content of one request against its plan, because a declared length is no guard (draft section 4.4.2).
///
/// Valid events: any number of `receive`, then one `end`. After a verdict other than `.accept` neither may follow.
package struct ContentCounter: Sendable {
    package let plan: ContentPlan
    /// Bytes of content seen so far.
    package private(set) var received: Int64 = 0

    package init(_ plan: ContentPlan) { self.plan = plan }

    package enum Verdict: Sendable, Hashable {
        case accept
        /// The content passes the known length: the upload is invalid for good.
        case exceedsLength(Int64)
        /// The representation passes its maximum size.
        case exceedsMaxSize(Int64)
        /// This request's content passes the maximum of one request.
        case exceedsMaxContent(Int64)
    }

    /// The next `count` bytes of content.
    package mutating func receive(_ count: Int) -> Verdict {
        let (total, overflow) = received.addingReportingOverflow(Int64(count))
        let (end, wraps) = plan.start.addingReportingOverflow(total)
        if let length = plan.length, overflow || wraps || end > length { return .exceedsLength(length) }
        if overflow || wraps || end > plan.maxSize { return .exceedsMaxSize(plan.maxSize) }
        if let maxContent = plan.maxContent, total > maxContent { return .exceedsMaxContent(maxContent) }
        received = total
        return .accept
    }

    package enum End: Sendable, Hashable {
        /// A part is in; the upload goes on.
        case part
        /// The representation of `length` bytes is whole.
        case complete(length: Int64)
        /// The request claimed to complete the representation but ended before its known length.
        case short(length: Int64, received: Int64)
    }

    /// The content ended as its framing says. An interruption is not an end.
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
