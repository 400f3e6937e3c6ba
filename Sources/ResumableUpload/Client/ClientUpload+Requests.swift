import HTTPSemantics

extension ClientUpload {
    var bound: ContentBound {
        ContentBound(own: intent.maxRequestContentLength, learned: learnedMax, limits: limits)
    }

    // MARK: Requests

    func creation() -> ClientRequest {
        var fields = intent.fields
        guard intent.style != .plain else { return creation(fields, completeContent, awaitsInterim: false) }
        for field in versionFields { fields.append(field.name, field.value) }
        let isTooMuch = bound.maxCount.map { completeContent.exceeds($0) } ?? false
        let isComplete = intent.length == 0 || (intent.style == .optimistic && !isTooMuch)
        append(completeness: isComplete, to: &fields)
        if let length = intent.length, intent.dialect.readsUploadLength {
            fields.append(UploadFieldName.length, "\(length)")
        }
        return creation(
            fields, isComplete ? completeContent : .empty, awaitsInterim: isComplete && intent.length != 0)
    }

    private func creation(
        _ fields: Fields, _ content: RequestContent, awaitsInterim: Bool
    ) -> ClientRequest {
        ClientRequest(
            kind: .create, resource: target, method: intent.method, fields: fields, content: content,
            awaitsInterim: awaitsInterim, carriesCredentials: !isTargetForeign)
    }

    /// An append at `acknowledged` with all remaining content, or as much as the bound allows.
    func append() -> ClientRequest {
        guard let length = intent.length else {
            let limit = bound.maxCount
            return append(.remaining(from: acknowledged, atMost: limit), isLast: limit == nil)
        }
        let count = bound.share(of: length - acknowledged)
        return append(
            count == 0 ? .empty : .range(from: acknowledged, count: count), isLast: acknowledged + count == length)
    }

    /// The completing append without content, which can be repeated.
    func completion() -> ClientRequest { append(.empty, isLast: true) }

    private func append(_ content: RequestContent, isLast: Bool) -> ClientRequest {
        var fields = versionFields
        if intent.dialect.requiresPartialUploadMediaType { fields.append("Content-Type", partialUploadMediaType) }
        fields.append(UploadFieldName.offset, "\(acknowledged)")
        append(completeness: isLast, to: &fields)
        if let length = intent.length, intent.dialect.sendsLengthOnAppend {
            fields.append(UploadFieldName.length, "\(length)")
        }
        return uploadRequest(.append, .patch, fields, content)
    }

    func retrieval() -> ClientRequest { uploadRequest(.retrieve, .head, versionFields, .none) }

    func cancellation(of uri: String) -> ClientRequest {
        var request = uploadRequest(.cancel, .delete, versionFields, .none)
        request.resource = .upload(uri)
        return request
    }

    func discovery() -> ClientRequest {
        ClientRequest(
            kind: .discover, resource: target, method: .options, fields: versionFields, content: .none,
            carriesCredentials: !isTargetForeign)
    }

    private func uploadRequest(
        _ kind: ClientRequest.Kind, _ method: Method, _ fields: Fields, _ content: RequestContent
    ) -> ClientRequest {
        ClientRequest(
            kind: kind, resource: .upload(temporaryURI ?? resumption?.uri ?? ""), method: method, fields: fields,
            content: content, carriesCredentials: !isTargetForeign && !isUploadForeign)
    }

    // MARK: Parts of requests

    private var completeContent: RequestContent {
        switch intent.length {
        case 0: .empty
        case let length?: .range(from: 0, count: length)
        case nil: .remaining(from: 0, atMost: nil)
        }
    }

    private var versionFields: Fields {
        var fields = Fields()
        if let version = intent.dialect.interopVersion { fields.append(UploadFieldName.interopVersion, "\(version)") }
        return fields
    }

    private func append(completeness isComplete: Bool, to fields: inout Fields) {
        let field = intent.dialect.completenessField(isComplete)
        fields.append(field.name, field.value)
    }
}

/// The maximum content of one request in bytes, and its minimum if more content follows (draft section 4.1.4).
struct ContentBound: Sendable, Hashable {
    /// `nil`: no bound.
    let maxCount: Int64?
    let minCount: Int64

    /// - Parameters:
    ///   - own: the caller's bound.
    ///   - learned: the bound derived from rejected requests.
    init(own: Int64?, learned: Int64?, limits: UploadLimits) {
        let server = [limits.maxAppendSize, learned].compactMap { $0 }.min()
        let minCount = min(limits.minAppendSize ?? 0, server ?? .max)
        // The server's minimum is required, so it overrides the caller's bound.
        let requested = own.map { max($0, minCount) }
        self.minCount = minCount
        maxCount = [server, requested].compactMap { $0 }.min().map { max(1, $0) }
    }

    /// The number of `remaining` bytes that the next request sends: the maximum, or all of them if they are fewer.
    func share(of remaining: Int64) -> Int64 {
        maxCount.map { min($0, remaining) } ?? remaining
    }

    /// The new bound after the server rejected content of `count` bytes as too large: half of it, but not less than the
    /// minimum. `nil` if the bound cannot be less than `count`.
    func below(_ count: Int64) -> Int64? {
        let half = max(count / 2, minCount)
        return half >= 1 && half < count ? half : nil
    }
}
