import HTTPSemantics

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
    /// `nil` for chunked content.
    package var contentLength: Int64?

    /// Reads the head of an append.
    ///
    /// Only the head is evaluated, so the result does not depend on the state of the upload. The media type is checked
    /// first, because with another media type the other fields have no meaning.
    /// - Throws: ``UploadError`` with status 415 or 400.
    package init(dialect: Dialect, fields: Fields, framing: MessageFraming) throws(UploadError) {
        if dialect.requiresPartialUploadMediaType {
            let type = fields["Content-Type"].flatMap { MediaType(parsing: $0) }
            guard let type, type.matches(partialUploadMediaType) else { throw .unsupportedMediaType }
        }
        if fields.contains("Content-Encoding") { throw .contentCodingOnAppend }
        guard let offset = fields.uploadInteger(UploadFieldName.offset) else { throw .missingOffset }
        guard let isComplete = dialect.completeness(ofAppend: fields) else { throw .missingCompleteness }
        self.dialect = dialect
        self.offset = offset
        self.isComplete = isComplete
        declaredLength = dialect.readsUploadLength ? fields.uploadInteger(UploadFieldName.length) : nil
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
        if state.isComplete && dialect.refusesCompletedBeforeOffset && !(dialect.answersRepeats && isRepeat(on: state))
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
        return isComplete || (dialect.reachingLengthCompletes && state.length == offset)
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
            if isComplete && dialect.derivesLength { length = end }
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
                maxContent: state.limits.maxAppendSize, determinesLength: length != nil && state.length == nil))
    }

    private func inconsistent(_ detail: String) -> Decision { .refuse(.inconsistentLength(detail: detail)) }
}
