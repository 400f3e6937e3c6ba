import HTTPSemantics
import StructuredFields

/// The version of the protocol that is used for one request.
///
/// Interop versions 3 to 8 are the drafts -01 to -11 and the editor's copy after them; `rfc` is the protocol of version
/// 8 without the draft's version field. The state of an upload does not depend on a version: each request can use
/// another dialect. This file contains all differences between the versions.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum Dialect: Int, Sendable, Hashable, CaseIterable, Codable {
    case interop3 = 3
    case interop4 = 4
    case interop5 = 5
    case interop6 = 6
    case interop7 = 7
    case interop8 = 8
    /// The protocol of a request without a usable version field.
    case rfc = 100

    /// The dialect that `Upload-Draft-Interop-Version` names, or `nil` if the field is absent, malformed or not a
    /// number from 3 to 8.
    package init?(announcedBy fields: Fields) {
        guard let version = fields.uploadInteger(UploadFieldName.interopVersion), version < 100,
            let dialect = Dialect(rawValue: Int(version))
        else { return nil }
        self = dialect
    }

    /// The value of the version field in requests and responses; `nil` for the published protocol, which does not have
    /// this field.
    public var interopVersion: Int? { self == .rfc ? nil : rawValue }
}

// MARK: - What requests mean

extension Dialect {
    /// Whether the content of the request ends the representation; `nil` if the field is absent or malformed.
    ///
    /// Interop version 3 has only the inverse field.
    package func completeness(of fields: Fields) -> Bool? {
        self == .interop3
            ? fields.uploadBoolean(UploadFieldName.incomplete).map { !$0 }
            : fields.uploadBoolean(UploadFieldName.complete)
    }

    /// Whether the content of an append ends the representation; `nil`: the append is rejected. Versions 3 to 6 do not
    /// require the field in an append.
    ///
    /// In version 3 an append without the field completes the upload. An append with a malformed field is rejected,
    /// because the client may have meant that more content follows.
    package func completeness(ofAppend fields: Fields) -> Bool? {
        if let isComplete = completeness(of: fields) { return isComplete }
        return switch self {
        case .interop3: fields.contains(UploadFieldName.incomplete) ? nil : true
        case .interop4, .interop5, .interop6: false
        case .interop7, .interop8, .rfc: nil
        }
    }

    /// Whether the media type of an append must be `application/partial-upload`.
    package var requiresPartialUploadMediaType: Bool { self >= .interop6 }

    /// Whether `Upload-Length` is read. Interop version 5 does not define it, but a deployed client of that version
    /// sends it.
    package var readsUploadLength: Bool { self >= .interop5 }

    /// Whether the content length of a completing request determines the length of the representation.
    package var derivesLength: Bool { self >= .interop4 }

    /// Whether `HEAD` and `DELETE` on an upload resource must not have fields about the state of the upload.
    package var forbidsStateFieldsOnRetrieval: Bool { self <= .interop6 }

    /// The error of a retrieval or cancellation with forbidden fields. Interop versions up to 6 forbid the fields of
    /// offset and completeness, and version 6 also forbids `Upload-Length`. Later versions ignore these fields.
    package func retrievalRefusal(fields: Fields) -> UploadError? {
        guard forbidsStateFieldsOnRetrieval else { return nil }
        var names = [UploadFieldName.offset, UploadFieldName.complete, UploadFieldName.incomplete]
        if self == .interop6 { names.append(UploadFieldName.length) }
        return names.contains(where: fields.contains) ? .stateFieldsOnRetrieval : nil
    }

    /// Whether an upload is complete once its content reaches the declared length, without `Upload-Complete: ?1`.
    ///
    /// A deployed client of versions 5 and 6 sends `?0` with the last content of a stream or of a resumed file, and
    /// with an empty file, and then reports success. Other servers of these versions complete such an upload.
    package var reachingLengthCompletes: Bool { self == .interop5 || self == .interop6 }

    /// What the end of a request's content means in this version.
    func completion(isComplete: Bool) -> ContentPlan.Completion {
        if isComplete { return .atEnd }
        return reachingLengthCompletes ? .atLength : .never
    }

    /// Whether the server completes the upload before it responds to a retrieval in this version.
    ///
    /// The server may have received the last content without sending a response, because the connection or the server
    /// failed. The clients of these versions then retrieve the offset, and report success if it is equal to the length.
    package func completesOnRetrieval(_ state: UploadState) -> Bool {
        reachingLengthCompletes && state.phase == .receiving && state.length == state.offset
    }
}

// MARK: - What responses look like

extension Dialect {
    /// The completeness field of a response, with its value.
    package func completenessField(_ isComplete: Bool) -> (name: String, value: String) {
        self == .interop3
            ? (UploadFieldName.incomplete, isComplete ? "?0" : "?1")
            : (UploadFieldName.complete, isComplete ? "?1" : "?0")
    }

    /// Whether interim responses can report progress; versions 3 and 4 do not have such responses.
    package var hasProgressResponses: Bool { self >= .interop5 }

    /// The status of an append that was stored and does not complete the upload.
    package var appendedStatus: Status { self <= .interop6 ? 201 : 204 }

    /// Whether the final response of a creation names the upload resource in `Location` even if the upload is complete;
    /// the location of the file is then in `Content-Location`.
    package var finalLocationIsUploadResource: Bool { self <= .interop6 }

    /// The status for a deactivated upload, as long as the store has a record of it.
    package var deactivatedStatus: Status { self <= .interop6 ? 404 : 410 }

    /// Whether appends to a completed upload are rejected before their offset is compared, as versions 6 and 7 require.
    package var refusesCompletedBeforeOffset: Bool { self == .interop6 || self == .interop7 }

    /// Whether a valid repeat of the completing append gets the stored final response.
    ///
    /// Version 7 requires an error. Version 6 requires it too. But in version 6 this server may complete an upload
    /// before the client has sent `Upload-Complete: ?1`, and must not respond with an error when the client sends it.
    package var answersRepeats: Bool { self != .interop7 }

    /// Whether the problem type `completed-upload` exists. The editor's copy, and so the RFC, does not define it.
    package var hasCompletedUploadProblem: Bool { self >= .interop6 && self != .rfc }

    /// Whether `Upload-Limit` has the lifetime also under its old key `expires`, in addition to `max-age`.
    package var sendsExpiresKey: Bool { self == .interop6 }
}

// MARK: - What clients send and understand

extension Dialect {
    /// Whether a client sends `Upload-Length` with an append, too; until version 6 it is a field of the creation.
    package var sendsLengthOnAppend: Bool { self >= .interop7 }

    /// Whether a client can expect the stored final response to a repeat of the completing append.
    package var replaysFinalResponse: Bool { self >= .interop8 }

    /// Whether a 104 is about an upload of this dialect. Clients of a draft ignore a 104 without a version or with
    /// another version. Clients of the published protocol ignore the version field.
    package func understands(_ interim: Fields) -> Bool {
        guard let interopVersion else { return true }
        return interim.uploadInteger(UploadFieldName.interopVersion) == Int64(interopVersion)
    }
}

extension Dialect: Comparable {
    /// Orders the versions by their age, with the published protocol last.
    public static func < (left: Dialect, right: Dialect) -> Bool { left.rawValue < right.rawValue }
}
