import HTTPSemantics
import ResumableUpload

/// Cross-origin resource sharing (the Fetch standard's CORS protocol) for pages that upload and download.
struct CrossOrigin: Sendable {
    /// Serialised origins; `*` stands for any.
    let origins: [String]

    /// Request fields that pages may set: the upload protocol's, and those of representations and ranges.
    static let requestFields =
        UploadFieldName.requestFields + [
            "Authorization", "Content-Type", "Content-Encoding", "Content-Disposition", "Content-Digest", "Repr-Digest",
            "Want-Repr-Digest", "Range", "If-Range", "If-Match", "If-None-Match",
        ] + ServerFieldName.requestFields
    /// Response fields that pages may read. Browsers hide interim responses; these come with final ones.
    static let responseFields =
        UploadFieldName.responseFields + [
            "Location", "Content-Location", "Content-Range", "Accept-Ranges", "ETag", "Repr-Digest", "Retry-After",
            "Accept-Patch", "Content-Disposition", ServerFieldName.explain,
        ]

    /// Fields for every response to a request.
    func responseFields(for request: Fields) -> Fields {
        guard !origins.isEmpty else { return [:] }
        var fields: Fields = ["Vary": "Origin"]
        guard let origin = request["Origin"], origins.contains(origin) || origins.contains("*") else { return fields }
        fields.append("Access-Control-Allow-Origin", origins.contains("*") ? "*" : origin)
        fields.append("Access-Control-Expose-Headers", Self.responseFields.joined(separator: ", "))
        return fields
    }

    /// Whether a browser asks for a page's sake what the page may send.
    static func isPreflight(_ request: Fields) -> Bool {
        request.contains("Origin") && request.contains("Access-Control-Request-Method")
    }

    /// Further fields where the request is a browser's preflight.
    func preflightFields(for request: Fields, methods: [Method]) -> Fields {
        guard Self.isPreflight(request), responseFields(for: request).contains("Access-Control-Allow-Origin")
        else { return [:] }
        return [
            "Access-Control-Allow-Methods": methods.map(\.rawValue).joined(separator: ", "),
            "Access-Control-Allow-Headers": Self.requestFields.joined(separator: ", "),
            "Access-Control-Max-Age": "86400",
        ]
    }
}
