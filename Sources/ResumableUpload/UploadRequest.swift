import HTTPSemantics

/// A request that may create an upload, and the decision about it (draft section 4.2).
package struct Creation: Sendable {
    package var dialect: Dialect
    /// The completeness field's value; `nil` for a plain request.
    package var isComplete: Bool?
    package var framing: MessageFraming
    /// The value of a valid `Upload-Length`. In a request with a completeness field, a dialect without
    /// ``Dialect/isUploadLengthRead`` ignores the field.
    package var declaredLength: Int64?
    /// Whether the completeness field is present but invalid, so it is ignored.
    package var hasInvalidCompleteness: Bool
    /// Whether the request is for a part of a parallel upload, or for the concatenation of such parts.
    package var isConcatenation: Bool

    /// - Parameter isComplete: the result of ``Dialect/completeness(of:)`` for the same fields.
    package init(dialect: Dialect, isComplete: Bool?, framing: MessageFraming, fields: Fields) {
        self.dialect = dialect
        self.isComplete = isComplete
        self.framing = framing
        let readsLength = isComplete == nil || dialect.isUploadLengthRead
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

    /// The reason why a request gets no upload resource and cannot be resumed.
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

    /// - Parameter isAnnounced: whether an interim response will report the location of the upload resource to the client
    ///   (``UploadResponses/isInterimResponseAllowed``).
    package func decide(limits: UploadLimits, announces isAnnounced: Bool = true) -> Decision {
        // Without this check the client would report success, although its parts are never concatenated.
        if isConcatenation { return .refuse(.concatenation) }
        guard let isComplete else { return decidePlain(limits: limits) }
        let completion = dialect.completion(isComplete: isComplete)
        var length = declaredLength
        if let content = contentLength {
            if let declared = declaredLength, content > declared || (isComplete && content != declared) {
                return .refuse(inconsistent(declared, content))
            }
            if isComplete && dialect.isLengthDerived { length = content }
        }
        if let refusal = limits.refusal(ofSize: max(length ?? 0, contentLength ?? 0)) { return .refuse(refusal) }
        var plan = ContentPlan(
            completion: completion, length: length, maxSize: limits.effectiveMaxSize, isLengthDetermined: length != nil)
        if isComplete,
            let reason = reasonForNoResource(size: length ?? contentLength, limits: limits, announces: isAnnounced)
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

    /// The reason why no upload resource is created for content that is the complete representation; `nil` if a
    /// resource is created.
    ///
    /// No resource is created if the representation is smaller than the minimum of resumable uploads, or if no response
    /// would report the location of the resource. A resource at an unknown location would only use storage until it
    /// expires. A representation of unknown size is not smaller than the minimum.
    private func reasonForNoResource(size: Int64?, limits: UploadLimits, announces isAnnounced: Bool) -> PlainReason? {
        if let size, let minSize = limits.minSize, size < minSize { return .belowMinSize }
        return isAnnounced || dialect.isFinalLocationUploadResource ? nil : .unannounced
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
                completion: .atEnd, length: length, maxSize: limits.effectiveMaxSize, isLengthDetermined: length != nil),
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
    func refusal(ofContent content: Int64?, completes isLast: Bool, isEmptyAllowed: Bool) -> UploadError? {
        guard let content else { return nil }
        if let maxAppendSize, content > maxAppendSize { return .appendTooLarge(limit: maxAppendSize) }
        if let minAppendSize, !isLast, content < minAppendSize, !(isEmptyAllowed && content == 0) {
            return .appendTooSmall(limit: minAppendSize)
        }
        return nil
    }
}

/// The head of an append, and the decision about it (draft section 4.4).
///
/// The head is evaluated before the upload is accessed, so that a malformed request cannot end a request in progress.
/// The state of the upload is evaluated after the previous request on it has ended.
package struct Append: Sendable, Hashable {
    package var dialect: Dialect
    /// The offset of the first byte of content.
    package var offset: Int64
    package var isComplete: Bool
    package var declaredLength: Int64?
    /// The length of the content in bytes; `nil` for chunked content.
    package var contentLength: Int64?

    /// Reads the head of an append.
    ///
    /// Only the head is evaluated, so the result does not depend on the state of the upload. The media type is checked
    /// first, because with another media type the other fields have no meaning.
    /// - Throws: ``UploadError`` with status 415 or 400.
    package init(dialect: Dialect, fields: Fields, framing: MessageFraming) throws(UploadError) {
        if dialect.isPartialUploadMediaTypeRequired {
            let type = fields["Content-Type"].flatMap { MediaType(parsing: $0) }
            guard let type, type.matches(partialUploadMediaType) else { throw .unsupportedMediaType }
        }
        if fields.contains("Content-Encoding") { throw .contentCodingOnAppend }
        guard let offset = fields.uploadInteger(UploadFieldName.offset) else { throw .missingOffset }
        guard let isComplete = dialect.completeness(ofAppend: fields) else { throw .missingCompleteness }
        self.dialect = dialect
        self.offset = offset
        self.isComplete = isComplete
        declaredLength = dialect.isUploadLengthRead ? fields.uploadInteger(UploadFieldName.length) : nil
        contentLength = framing.contentLength
    }

    package enum Decision: Sendable, Hashable {
        case refuse(UploadError)
        /// A valid repeat of the completing append: send the stored response again.
        case replay(Response)
        /// The target resource is still processing the upload: wait for its response and send it.
        case join
        case accept(ContentPlan)
    }

    /// Evaluates the append against the state of the upload after its previous request has ended.
    package func decide(state: UploadState) -> Decision {
        if state.isComplete && dialect.isCompletedRefusedBeforeOffset
            && !(dialect.isFinalResponseReplayed && isRepeat(on: state))
        {
            return .refuse(.completed)
        }
        // Offsets are compared first, because the length that an append implies has no meaning if its offset is wrong.
        guard offset == state.offset else {
            return .refuse(.mismatchingOffset(expected: state.offset, provided: offset))
        }
        switch state.phase {
        case .complete(let response):
            return decideRepeat(state: state, .replay(response))
        case .processing:
            return decideRepeat(state: state, .join)
        case .receiving:
            return decideContent(state: state)
        }
    }

    /// The upload is complete: everything except a valid repeat of the completing append is rejected.
    private func decideRepeat(state: UploadState, _ answer: Decision) -> Decision {
        guard isRepeat(on: state) else { return .refuse(.completed) }
        let length = state.length ?? state.offset
        guard declaredLength == nil || declaredLength == length else {
            return inconsistent("The upload has \(length) bytes, but this request has another Upload-Length.")
        }
        return answer
    }

    /// Whether the append has no content, starts at the offset of the upload, and completes it.
    private func isRepeat(on state: UploadState) -> Bool {
        guard contentLength == 0, offset == state.offset else { return false }
        return isComplete || (dialect.isCompleteAtLength && state.length == offset)
    }

    private func decideContent(state: UploadState) -> Decision {
        let end = contentLength.map { offset.addingReportingOverflow($0) }
        if let end, end.overflow { return .refuse(.uploadTooLarge(limit: state.limits.effectiveMaxSize)) }
        if let declared = declaredLength {
            if let known = state.length, known != declared {
                return inconsistent("The upload has \(known) bytes, but this request has Upload-Length \(declared).")
            }
            if declared < offset {
                return inconsistent("Upload-Length is \(declared), but the upload already has \(offset) bytes.")
            }
        }
        var length = state.length ?? declaredLength
        if let end = end?.partialValue {
            if let length, end > length || (isComplete && end != length) {
                return inconsistent("The upload has \(length) bytes, but this request's content ends at byte \(end).")
            }
            if isComplete && dialect.isLengthDerived { length = end }
            if let refusal = state.limits.refusal(ofSize: end) { return .refuse(refusal) }
        }
        if let refusal = state.limits.refusal(ofSize: length ?? 0) { return .refuse(refusal) }
        let completion = dialect.completion(isComplete: isComplete)
        let completes = isComplete || (completion == .atLength && length != nil && length == end?.partialValue)
        if let refusal = state.limits.refusal(ofContent: contentLength, completes: completes, isEmptyAllowed: false) {
            return .refuse(refusal)
        }
        return .accept(
            ContentPlan(
                start: offset, completion: completion, length: length, maxSize: state.limits.effectiveMaxSize,
                maxContent: state.limits.maxAppendSize, isLengthDetermined: length != nil && state.length == nil))
    }

    private func inconsistent(_ detail: String) -> Decision { .refuse(.inconsistentLength(detail: detail)) }
}
