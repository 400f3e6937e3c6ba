import HTTPSemantics

/// A request that may create an upload, and the decision about it (draft section 4.2).
package struct Creation: Sendable {
    package var dialect: Dialect
    /// The completeness field's value; `nil` for a plain request.
    package var isComplete: Bool?
    package var framing: MessageFraming
    /// The value of a valid `Upload-Length`. In a request with a completeness field, a dialect without
    /// ``Dialect/readsUploadLength`` ignores the field.
    package var declaredLength: Int64?
    /// Whether the completeness field is present but invalid, so that it is ignored.
    package var hasInvalidCompleteness: Bool
    /// Whether the request is for a part of a parallel upload, or for the concatenation of such parts.
    package var isConcatenation: Bool

    /// - Parameter isComplete: the result of ``Dialect/completeness(of:)`` for the same fields.
    package init(dialect: Dialect, isComplete: Bool?, framing: MessageFraming, fields: Fields) {
        self.dialect = dialect
        self.isComplete = isComplete
        self.framing = framing
        let readsLength = isComplete == nil || dialect.readsUploadLength
        hasInvalidCompleteness = isComplete == nil && fields.contains(dialect.completenessField(true).name)
        isConcatenation = fields.contains(TusProtocol.concatenationField)
        declaredLength = readsLength ? fields.uploadInteger(UploadFieldName.length) : nil
    }

    package enum Decision: Sendable, Hashable {
        case refuse(UploadError)
        /// Handle the request as an ordinary one: no upload resource, no interim response of the upload protocol. If
        /// the request had a completeness field, the response still states that the upload is complete.
        case plain(ContentPlan, PlainReason)
        /// Create an upload resource, then store the content.
        case create(ContentPlan)
    }

    /// Why a request gets no upload resource and cannot be resumed.
    package enum PlainReason: String, Sendable, Hashable, CaseIterable {
        /// The request does not state whether its content is the complete representation.
        case noCompleteness = "no-completeness"
        /// The completeness field of the request is ignored, because it is not a Boolean or not on one line.
        case invalidCompleteness = "void-completeness"
        /// The representation is smaller than the minimum of resumable uploads.
        case belowMinSize = "below-min-size"
        /// No response before the final one would report the location of the upload to the client.
        case unannounced
    }

    /// - Parameter announces: whether an interim response will report the location of the upload resource to the client
    ///   (``UploadResponses/allowsInterimResponses``).
    package func decide(limits: UploadLimits, announces: Bool = true) -> Decision {
        // Without this check the client would report success, although its parts are never concatenated.
        if isConcatenation { return .refuse(.concatenation) }
        guard let isComplete else { return decidePlain(limits: limits) }
        let completion = dialect.completion(isComplete: isComplete)
        var length = declaredLength
        if let content = contentLength {
            if let declared = declaredLength, content > declared || (isComplete && content != declared) {
                return .refuse(inconsistent(declared, content))
            }
            if isComplete && dialect.derivesLength { length = content }
        }
        if let refusal = limits.refusal(ofSize: max(length ?? 0, contentLength ?? 0)) { return .refuse(refusal) }
        var plan = ContentPlan(
            completion: completion, length: length, maxSize: limits.effectiveMaxSize, determinesLength: length != nil)
        if isComplete,
            let reason = reasonForNoResource(size: length ?? contentLength, limits: limits, announces: announces)
        {
            return .plain(plan, reason)
        }
        plan.maxContent = limits.maxAppendSize
        let completes = isComplete || (completion == .atLength && length != nil && length == contentLength)
        if let refusal = limits.refusal(ofContent: contentLength, completes: completes, isEmptyAllowed: true) {
            return .refuse(refusal)
        }
        return .create(plan)
    }

    /// Why no upload resource is created for content that is the complete representation; `nil` if a resource is
    /// created.
    ///
    /// No resource is created if the representation is smaller than the minimum of resumable uploads, or if no response
    /// would report the location of the resource. A resource at an unknown location would only use storage until it
    /// expires. A representation of unknown size is not smaller than the minimum.
    private func reasonForNoResource(size: Int64?, limits: UploadLimits, announces: Bool) -> PlainReason? {
        if let size, let minSize = limits.minSize, size < minSize { return .belowMinSize }
        return announces || dialect.finalLocationIsUploadResource ? nil : .unannounced
    }

    private func decidePlain(limits: UploadLimits) -> Decision {
        // An invalid completeness field must be ignored, but a declared length still detects a truncated file.
        if let declared = declaredLength, let content = contentLength, declared != content {
            return .refuse(inconsistent(declared, content))
        }
        let length = declaredLength ?? contentLength
        if let refusal = limits.refusal(ofSize: length ?? 0) { return .refuse(refusal) }
        return .plain(
            ContentPlan(
                completion: .atEnd, length: length, maxSize: limits.effectiveMaxSize, determinesLength: length != nil),
            hasInvalidCompleteness ? .invalidCompleteness : .noCompleteness)
    }

    private var contentLength: Int64? { framing.contentLength }

    private func inconsistent(_ declared: Int64, _ content: Int64) -> UploadError {
        .inconsistentLength(
            detail: "Upload-Length is \(declared), but the content of this request has \(content) bytes.")
    }
}

extension MessageFraming {
    /// The size of the content in bytes, if the head declares it.
    var contentLength: Int64? {
        switch self {
        case .none: 0
        case .length(let length): length
        case .chunked: nil
        }
    }
}

extension UploadLimits {
    /// The error if a representation of this size is too large; otherwise `nil`.
    func refusal(ofSize size: Int64) -> UploadError? {
        size > effectiveMaxSize ? .uploadTooLarge(limit: effectiveMaxSize) : nil
    }

    /// The error if the content of one request, a creation or an append, is too large or too small; otherwise `nil`. A
    /// request that completes an upload may be small.
    func refusal(ofContent content: Int64?, completes: Bool, isEmptyAllowed: Bool) -> UploadError? {
        guard let content else { return nil }
        if let maxAppendSize, content > maxAppendSize { return .appendTooLarge(limit: maxAppendSize) }
        if let minAppendSize, !completes, content < minAppendSize, !(isEmptyAllowed && content == 0) {
            return .appendTooSmall(limit: minAppendSize)
        }
        return nil
    }
}
