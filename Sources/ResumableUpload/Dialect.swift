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
    /// Draft -01, which iOS 17 uses.
    case interop3 = 3
    /// Draft -02.
    case interop4 = 4
    /// Draft -03, which iOS 18.0 uses.
    case interop5 = 5
    /// Drafts -04 and -05, which iOS 18.1 uses.
    case interop6 = 6
    /// Drafts -06 to -08.
    case interop7 = 7
    /// Drafts -09 to -11, which iOS 26 uses.
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

    /// The interop versions, for messages.
    package static let interopVersions = "3 to 8"

    /// The newest interop version, which clients use unless another one is selected.
    public static let newest = Dialect.interop8

    /// The dialect of requests and fields that do not name a version.
    package static let unversioned = Dialect.rfc

    /// The name of the dialect in options: the interop version, or `rfc`.
    package var name: String { interopVersion.map(String.init) ?? "rfc" }

    /// - Returns: `nil` if no dialect has this name.
    package init?(named name: String) {
        guard let dialect = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = dialect
    }

    /// The value of the version field in requests and responses; `nil` for the published protocol, which does not have
    /// this field.
    public var interopVersion: Int? { self == .rfc ? nil : rawValue }
}

// MARK: - Meaning of requests

extension Dialect {
    /// Whether the content of the request ends the representation; `nil` if the field is absent or malformed.
    ///
    /// Interop version 3 has only the inverse field.
    package func completeness(of fields: Fields) -> Bool? {
        self == .interop3
            ? fields.uploadBoolean(UploadFieldName.incomplete).map { !$0 }
            : fields.uploadBoolean(UploadFieldName.complete)
    }

    /// Whether the content of an append ends the representation; `nil`: the append is rejected. Interop versions 3 to 6
    /// do not require the field in an append.
    ///
    /// In interop version 3 an append without the field completes the upload. An append with a malformed field is
    /// rejected, because the client may have meant that more content follows.
    package func completeness(ofAppend fields: Fields) -> Bool? {
        if let isComplete = completeness(of: fields) { return isComplete }
        return switch self {
        case .interop3: fields.contains(UploadFieldName.incomplete) ? nil : true
        case .interop4, .interop5, .interop6: false
        case .interop7, .interop8, .rfc: nil
        }
    }

    /// Whether the media type of an append must be `application/partial-upload`.
    package var isPartialUploadMediaTypeRequired: Bool { self >= .interop6 }

    /// Whether `Upload-Length` is read. Interop version 5 does not define it, but a deployed client of that version
    /// sends it.
    package var isUploadLengthRead: Bool { self >= .interop5 }

    /// Whether the content length of a completing request determines the length of the representation.
    package var isLengthDerived: Bool { self >= .interop4 }

    /// Whether `HEAD` and `DELETE` on an upload resource must not have fields about the state of the upload.
    package var isStateForbiddenOnRetrieval: Bool { self <= .interop6 }

    /// The error of a retrieval or cancellation with forbidden fields. Interop versions up to 6 forbid the fields of
    /// offset and completeness, and interop version 6 also forbids `Upload-Length`. Later versions ignore these fields.
    package func retrievalRefusal(fields: Fields) -> UploadError? {
        guard isStateForbiddenOnRetrieval else { return nil }
        var names = [UploadFieldName.offset, UploadFieldName.complete, UploadFieldName.incomplete]
        if self == .interop6 { names.append(UploadFieldName.length) }
        return names.contains(where: fields.contains) ? .stateFieldsOnRetrieval : nil
    }

    /// Whether an upload is complete once its content reaches the declared length, without `Upload-Complete: ?1`.
    ///
    /// A deployed client of interop versions 5 and 6 sends `?0` with the last content of a stream or of a resumed file,
    /// and with an empty file, and then reports success. Other servers of these versions complete such an upload.
    package var isCompleteAtLength: Bool { self == .interop5 || self == .interop6 }

    /// The meaning of the end of a request's content in this version.
    func completion(isComplete: Bool) -> ContentPlan.Completion {
        if isComplete { return .atEnd }
        return isCompleteAtLength ? .atLength : .never
    }

    /// Whether the server completes the upload before it responds to a retrieval in this version.
    ///
    /// The server may have received the last content without sending a response, because the connection or the server
    /// failed. The clients of these versions then retrieve the offset, and report success if it is equal to the length.
    package func completesOnRetrieval(_ state: UploadState) -> Bool {
        isCompleteAtLength && state.phase == .receiving && state.length == state.offset
    }
}

// MARK: - Form of responses

extension Dialect {
    /// The completeness field of a response, with its value.
    package func completenessField(_ isComplete: Bool) -> (name: String, value: String) {
        self == .interop3
            ? (UploadFieldName.incomplete, isComplete ? "?0" : "?1")
            : (UploadFieldName.complete, isComplete ? "?1" : "?0")
    }

    /// Whether interim responses can report progress; interop versions 3 and 4 do not have such responses.
    package var hasProgressResponses: Bool { self >= .interop5 }

    /// The status of an append that was stored and does not complete the upload.
    package var appendedStatus: Status { self <= .interop6 ? 201 : 204 }

    /// Whether the final response of a creation names the upload resource in `Location` even if the upload is complete;
    /// the location of the file is then in `Content-Location`.
    package var isFinalLocationUploadResource: Bool { self <= .interop6 }

    /// The status for a deactivated upload, as long as the store has a record of it.
    package var deactivatedStatus: Status { self <= .interop6 ? 404 : 410 }

    /// Whether appends to a completed upload are rejected before their offset is compared, as interop versions 6 and 7
    /// require.
    package var isCompletedRefusedBeforeOffset: Bool { self == .interop6 || self == .interop7 }

    /// Whether a valid repeat of the completing append gets the stored final response.
    ///
    /// Interop version 7 requires an error. Interop version 6 requires it too. But in interop version 6 this server may
    /// complete an upload before the client has sent `Upload-Complete: ?1`, and must not respond with an error when the
    /// client sends it.
    package var isFinalResponseReplayed: Bool { self != .interop7 }

    /// Whether the problem type `completed-upload` exists. The editor's copy, and so the RFC, does not define it.
    package var hasCompletedUploadProblem: Bool { self >= .interop6 && self != .rfc }

    /// Whether `Upload-Limit` has the lifetime also under its old key `expires`, in addition to `max-age`.
    package var isExpiresKeySent: Bool { self == .interop6 }
}

// MARK: - Behavior of clients

extension Dialect {
    /// Whether a client sends `Upload-Length` with an append, too; until interop version 6 it is a field of the
    /// creation.
    package var isLengthSentOnAppend: Bool { self >= .interop7 }

    /// Whether a client can expect the stored final response to a repeat of the completing append.
    package var isReplayExpected: Bool { self >= .interop8 }

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

/// The operation of the upload protocol that a request performs (draft section 4, in the order of its detection
/// algorithm).
///
/// The target resource decides whether it accepts uploads, and with which methods.
package enum RequestKind: Sendable, Hashable {
    /// `HEAD` or `GET` on an upload resource.
    case retrieval
    /// `PATCH` on an upload resource.
    case append
    /// `DELETE` on an upload resource.
    case cancellation
    /// `OPTIONS` on any resource.
    case discovery
    /// A request to a target resource that states whether its content is the complete representation.
    case creation(isComplete: Bool)
    /// A request that does not use the upload protocol.
    case plain
    /// A request to an upload resource with a method that upload resources do not support.
    case notAllowed

    package init(method: Method, isUploadResource: Bool, fields: Fields, dialect: Dialect) {
        if method == .options {
            self = .discovery
        } else if isUploadResource {
            switch method {
            case .head, .get: self = .retrieval
            case .patch: self = .append
            case .delete: self = .cancellation
            default: self = .notAllowed
            }
        } else if !method.isSafe, method != .delete, method != .connect,
            let complete = dialect.completeness(of: fields)
        {
            self = .creation(isComplete: complete)
        } else {
            self = .plain
        }
    }
}

/// The older protocol tus 1.0, which has some field names in common with the draft, with other meanings.
///
/// It is only recognized here, to distinguish its clients from those of the draft.
package enum TusProtocol {
    /// The field that every request of a tus 1.0 client has, except `OPTIONS`.
    package static let versionField = "Tus-Resumable"
    /// The field for partial uploads and their concatenation, which the draft does not have.
    package static let concatenationField = "Upload-Concat"
    /// The field with the name, media type and other properties of the file.
    package static let metadataField = "Upload-Metadata"

    /// Fields that only the draft has. `Upload-Length` and `Upload-Offset` are fields of both protocols.
    private static let draftFields = [
        UploadFieldName.interopVersion, UploadFieldName.complete, UploadFieldName.incomplete,
    ]

    /// Whether a request uses tus 1.0. A request with a field that only the draft has uses the draft, even if it has
    /// `Tus-Resumable`.
    package static func isUsed(by fields: Fields) -> Bool {
        fields.contains(versionField) && !draftFields.contains(where: fields.contains)
    }
}

/// Names of the fields and of the media type that the draft defines (sections 4.1 and 6, and appendix B).
package enum UploadFieldName {
    package static let offset = "Upload-Offset"
    package static let complete = "Upload-Complete"
    /// The inverse of ``complete``, only in interop version 3.
    package static let incomplete = "Upload-Incomplete"
    /// The field of completeness, for messages to people.
    package static let completeInEveryVersion = "Upload-Complete (interop version 3: Upload-Incomplete)"
    package static let length = "Upload-Length"
    package static let limit = "Upload-Limit"
    package static let interopVersion = "Upload-Draft-Interop-Version"

    /// All request fields of the protocol, for the preflight requests of browsers.
    package static let requestFields = [offset, complete, incomplete, length, interopVersion]
    /// All response fields of the protocol, which are exposed to browsers.
    package static let responseFields = [offset, complete, incomplete, length, limit, interopVersion]
}

/// The media type of an append's content (draft section 6).
package let partialUploadMediaType = "application/partial-upload"

extension Fields {
    /// The value of a field that is an Item with a non-negative Integer; `nil` if it is absent or invalid.
    ///
    /// A field that does not parse, has another type or is negative counts as absent (draft section 4.1,
    /// RFC 9651 section 4.2); parameters are ignored.
    package func uploadInteger(_ name: String) -> Int64? {
        guard let text = self[name], let item = try? Item(parsing: text), case .integer(let value) = item.value,
            value >= 0
        else { return nil }
        return Int64(value)
    }

    /// The value of a field that is an Item with a Boolean; `nil` if it is absent or invalid.
    package func uploadBoolean(_ name: String) -> Bool? {
        guard let text = self[name], let item = try? Item(parsing: text), case .boolean(let value) = item.value
        else { return nil }
        return value
    }
}
