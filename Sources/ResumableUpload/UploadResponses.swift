import HTTPSemantics

/// The state of an upload with which requests are evaluated. It does not depend on the version of the protocol or on
/// the storage.
package struct UploadState: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// The upload waits for content or for the request that completes it.
        case receiving
        /// All content was received, and the target resource processes it.
        case processing
        /// The target resource has responded.
        case complete(Response)
    }

    /// The number of durable bytes of the representation.
    package var offset: Int64
    /// The length of the complete representation in bytes; `nil` until a request determines it.
    package var length: Int64?
    package var phase: Phase
    /// The limits of this upload; `maxAge` is the remaining lifetime in seconds.
    package var limits: UploadLimits

    package init(offset: Int64, length: Int64? = nil, phase: Phase = .receiving, limits: UploadLimits = UploadLimits())
    {
        self.offset = offset
        self.length = length
        self.phase = phase
        self.limits = limits
    }

    /// Whether the target has sent its final response, as `Upload-Complete` reports it (draft section 4.1.2).
    package var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }
}

/// Creates all responses of the upload protocol in one dialect (draft sections 4.1 to 4.5).
///
/// A response can have fields that only other versions require, because clients ignore additional fields.
package struct UploadResponses: Sendable {
    package let dialect: Dialect
    /// Whether the request named the dialect; only then is the version echoed.
    package let shouldEchoVersion: Bool

    /// Whether 104 may be sent to the client, and if not, why.
    package let interim: InterimPermission

    package init(dialect: Dialect, shouldEchoVersion: Bool, interim: InterimPermission = .allowed) {
        self.dialect = dialect
        self.shouldEchoVersion = shouldEchoVersion
        self.interim = interim
    }

    /// Whether 104 may be sent to the client.
    package var isInterimResponseAllowed: Bool { interim == .allowed }

    // MARK: Interim

    /// 104 that announces the upload resource (draft section 4.2.2).
    package func announcement(location: String, limits: UploadLimits) -> ResponseHead {
        var fields = versionFields
        fields.append("Location", location)
        fields.append(UploadFieldName.limit, limits.fieldValue(for: dialect))
        return ResponseHead(status: 104, fields: fields)
    }

    /// 104 that reports a durable offset; `nil` if the dialect does not have such responses. The 104 never has a
    /// location.
    package func progress(offset: Int64) -> ResponseHead? {
        guard dialect.hasProgressResponses else { return nil }
        var fields = versionFields
        fields.append(UploadFieldName.offset, "\(offset)")
        return ResponseHead(status: 104, fields: fields)
    }

    // MARK: Final

    /// The response to a creation with a part of the content.
    package func created(location: String, state: UploadState) -> Response {
        var response = Response(status: 201, fields: stateFields(state, isComplete: false))
        response.fields.append("Location", location)
        return response
    }

    /// The response to an append with a part of the content.
    package func appended(state: UploadState) -> Response {
        Response(status: dialect.appendedStatus, fields: stateFields(state, isComplete: false))
    }

    /// The response of the target resource with the fields of the protocol. The response is stored without these
    /// fields, because a later request may use another dialect. The same fields are added to the error for content that
    /// does not match `Repr-Digest`, which is also stored without them.
    /// - Parameter uploadLocation: the location of the upload resource if this is the response to its creation,
    ///   otherwise `nil`.
    package func finished(_ answer: Response, state: UploadState, uploadLocation: String?) -> Response {
        var response = answer
        // The six fields of the upload, and those that the server adds to every response.
        response.fields.reserveCapacity(response.fields.count + 12)
        // The location of a redirection must not be replaced.
        if let uploadLocation, dialect.isFinalLocationUploadResource, !answer.status.isRedirection {
            if let own = response.fields["Location"] { response.fields.set("Content-Location", own) }
            response.fields.set("Location", uploadLocation)
        }
        setStateFields(state, isComplete: true, in: &response.fields)
        return response
    }

    /// The response to a retrieval of the offset (draft section 4.3.2).
    package func retrieved(state: UploadState) -> Response {
        var response = Response(status: 204, fields: stateFields(state, isComplete: state.isComplete))
        if let length = state.length { response.fields.append(UploadFieldName.length, "\(length)") }
        response.fields.append("Cache-Control", "no-store")
        return response
    }

    /// The response to a cancellation.
    package func canceled() -> Response { Response(status: 204, fields: versionFields) }

    /// The response to `OPTIONS`: the features of a target resource or an upload resource (draft section 4.1.4).
    package func discovered(limits: UploadLimits, allow: [Method]) -> Response {
        var fields = versionFields
        fields.append("Allow", allow.map(\.rawValue).joined(separator: ", "))
        fields.append("Accept-Patch", partialUploadMediaType)
        fields.append(UploadFieldName.limit, limits.fieldValue(for: dialect))
        return Response(status: 204, fields: fields)
    }

    /// An error of the upload protocol: a problem document, never marked as complete.
    /// - Parameters:
    ///   - offset: the offset of the upload, if it is known and the upload is active.
    ///   - limits: the limits to announce, if they are known or are the reason for the error.
    package func refused(_ error: UploadError, offset: Int64? = nil, limits: UploadLimits? = nil) -> Response {
        let problem = error.problem(in: dialect)
        var fields = versionFields
        let completeness = dialect.completenessField(false)
        fields.append(completeness.name, completeness.value)
        if case .mismatchingOffset(let expected, _) = error {
            fields.append(UploadFieldName.offset, "\(expected)")
        } else if let offset, !error.isEndOfUpload {
            fields.append(UploadFieldName.offset, "\(offset)")
        }
        if let limits { fields.append(UploadFieldName.limit, limits.fieldValue(for: dialect)) }
        switch error {
        case .unsupportedMediaType: fields.append("Accept-Patch", partialUploadMediaType)
        case .contentCodingOnAppend:
            // Accept-Encoding shows that the content coding was rejected, not the media type (RFC 9110 section 12.5.3).
            fields.append("Accept-Encoding", "identity")
            fields.append("Accept-Patch", partialUploadMediaType)
        case .methodNotAllowed: fields.append("Allow", "HEAD, GET, PATCH, DELETE, OPTIONS")
        default: break
        }
        fields.append("Cache-Control", "no-store")
        return Response(problem, fields: fields)
    }

    /// A failure outside the protocol. It is never marked as complete, so that the client can resume.
    package func failed(_ problem: ProblemDetails, offset: Int64?) -> Response {
        var fields = versionFields
        let completeness = dialect.completenessField(false)
        fields.append(completeness.name, completeness.value)
        if let offset { fields.append(UploadFieldName.offset, "\(offset)") }
        fields.append("Cache-Control", "no-store")
        return Response(problem, fields: fields)
    }

    // MARK: Fields

    private var versionFields: Fields {
        var fields = Fields()
        setVersionField(in: &fields)
        return fields
    }

    private func stateFields(_ state: UploadState, isComplete: Bool) -> Fields {
        var fields = Fields()
        setStateFields(state, isComplete: isComplete, in: &fields)
        return fields
    }

    private func setVersionField(in fields: inout Fields) {
        guard shouldEchoVersion, let version = dialect.interopVersion else { return }
        fields.set(UploadFieldName.interopVersion, "\(version)")
    }

    private func setStateFields(_ state: UploadState, isComplete: Bool, in fields: inout Fields) {
        setVersionField(in: &fields)
        let completeness = dialect.completenessField(isComplete)
        fields.set(completeness.name, completeness.value)
        fields.set(UploadFieldName.offset, "\(state.offset)")
        fields.set(UploadFieldName.limit, state.limits.fieldValue(for: dialect))
    }
}

extension UploadResponses {
    /// Chooses the dialect that the request names, or otherwise the dialect of the request that created its upload
    /// (draft appendix B).
    ///
    /// An unusable version is handled like an absent version, except that no 104 is sent, because the client expects
    /// its own version in a 104.
    /// - Parameters:
    ///   - version: the HTTP version of the request; HTTP/1.0 does not have interim responses.
    ///   - storedDialect: the dialect of the creation, if the request is for an upload resource.
    ///   - withholding: why only final responses may be sent; `nil` if the server has no such reason.
    ///   - isAnnouncedWithoutVersion: whether requests without a version get 104, as in the published protocol. The draft
    ///     forbids it.
    package init(
        answering fields: Fields, version: ProtocolVersion = .http11, storedDialect: Dialect? = nil,
        isAnnouncedWithoutVersion: Bool = false, withholding: InterimObstacle? = nil
    ) {
        let named = Dialect(announcedBy: fields)
        let isUnversioned = !fields.contains(UploadFieldName.interopVersion)
        self.init(
            dialect: named ?? (isAnnouncedWithoutVersion ? nil : storedDialect) ?? .unversioned,
            shouldEchoVersion: named != nil,
            interim: Self.permission(
                version: version, isNamed: named != nil, isUnversioned: isUnversioned,
                isAnnouncedWithoutVersion: isAnnouncedWithoutVersion, withholding: withholding))
    }

    private static func permission(
        version: ProtocolVersion, isNamed: Bool, isUnversioned: Bool, isAnnouncedWithoutVersion: Bool,
        withholding: InterimObstacle?
    ) -> InterimPermission {
        if version < .http11 { return .withheld(.oldHTTP) }
        if let withholding { return .withheld(withholding) }
        if isNamed || (isAnnouncedWithoutVersion && isUnversioned) { return .allowed }
        return .withheld(isUnversioned ? .noVersion : .unusableVersion)
    }
}

/// Whether interim responses (104) may be sent in answer to a request (draft section 4.2.2).
package enum InterimPermission: Sendable, Hashable {
    case allowed
    case withheld(InterimObstacle)
}

/// The reason why no 104 may be sent before the final response to a request. If there are several reasons, the first
/// one is used.
package enum InterimObstacle: String, Sendable, Hashable, CaseIterable {
    /// HTTP/1.0 does not support interim responses (RFC 9110 section 15.2).
    case oldHTTP = "old-http"
    /// The operator of the server has turned interim responses off.
    case turnedOff = "turned-off"
    /// The request declines interim responses.
    case declined
    /// The request names no version, and the protocol is not published (draft appendix B).
    case noVersion = "no-version"
    /// The request names a version that is not supported, or its version field is malformed. The client would not
    /// understand a 104 of another version.
    case unusableVersion = "unusable-version"
}
