import HTTPSemantics
import ResumableUpload

extension Dialect {
    static let drafts = allCases.filter { $0 != .rfc }

    /// The fields of a request as a client of this version writes them; arguments that are `nil` are omitted.
    func request(
        complete: Bool? = nil, offset: Int64? = nil, length: Int64? = nil, mediaType: String? = nil
    ) -> Fields {
        var fields = Fields()
        if self != .rfc { fields.append("Upload-Draft-Interop-Version", "\(rawValue)") }
        if let complete {
            if self == .interop3 {
                fields.append("Upload-Incomplete", complete ? "?0" : "?1")
            } else {
                fields.append("Upload-Complete", complete ? "?1" : "?0")
            }
        }
        if let offset { fields.append("Upload-Offset", "\(offset)") }
        if let length { fields.append("Upload-Length", "\(length)") }
        if let mediaType { fields.append("Content-Type", mediaType) }
        return fields
    }

    /// The fields of an append, with the media type that every version accepts.
    func append(complete: Bool? = nil, offset: Int64?, length: Int64? = nil) -> Fields {
        request(complete: complete, offset: offset, length: length, mediaType: "application/partial-upload")
    }

    /// Whether reaching the declared length completes an upload in this version; independent of the tested code.
    var lengthCompletes: Bool { self == .interop5 || self == .interop6 }

    /// The completion that the tests expect at the end of content in this version.
    func expectedCompletion(_ isComplete: Bool) -> ContentPlan.Completion {
        isComplete ? .atEnd : lengthCompletes ? .atLength : .never
    }

    var responses: UploadResponses { UploadResponses(dialect: self, shouldEchoVersion: self != .rfc) }

    func creation(complete: Bool?, framing: MessageFraming, length: Int64? = nil) -> Creation {
        Creation(
            dialect: self, isComplete: complete, framing: framing, fields: request(complete: complete, length: length))
    }

    /// The decision about an append with these fields; a head that cannot be read results in a refusal.
    func decide(_ fields: Fields, _ framing: MessageFraming, on state: UploadState) -> Append.Decision {
        do {
            return try Append(dialect: self, fields: fields, framing: framing).decide(state: state)
        } catch {
            return .refuse(error)
        }
    }
}

extension Fields {
    /// The completeness that a client of `dialect` reads in these response fields; independent of the tested code.
    func completeness(in dialect: Dialect) -> Bool? {
        switch dialect == .interop3 ? self["Upload-Incomplete"] : self["Upload-Complete"] {
        case "?1": dialect != .interop3
        case "?0": dialect == .interop3
        default: nil
        }
    }
}

extension Creation.Decision {
    var plan: ContentPlan? {
        switch self {
        case .create(let plan), .plain(let plan, _): plan
        case .refuse: nil
        }
    }

    var createdPlan: ContentPlan? { if case .create(let plan) = self { plan } else { nil } }
    var plainPlan: ContentPlan? { if case .plain(let plan, _) = self { plan } else { nil } }
    var refusal: UploadError? { if case .refuse(let error) = self { error } else { nil } }
}

extension Append.Decision {
    var plan: ContentPlan? { if case .accept(let plan) = self { plan } else { nil } }
    var refusal: UploadError? { if case .refuse(let error) = self { error } else { nil } }
}

extension UploadError {
    var isInconsistentLength: Bool { if case .inconsistentLength = self { true } else { false } }
}
