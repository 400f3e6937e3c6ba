import HTTPSemantics
import ResumableUpload

/// Cross-origin resource sharing (the Fetch standard's CORS protocol) for pages that upload and download.
struct CrossOrigin: Sendable {
    /// Serialized origins, at least one; `*` means any origin.
    let origins: [String]

    /// Request fields that pages may always set: those of the upload protocol, of representations and of ranges.
    static let requestFields =
        UploadFieldName.requestFields + [
            "Authorization", "Content-Type", "Content-Encoding", "Content-Disposition", "Content-Digest", "Repr-Digest",
            "Want-Repr-Digest", "Range", "If-Range", "If-Match", "If-None-Match",
        ] + ServerFieldName.requestFields
    /// Response fields that pages may read. Browsers do not show interim responses, so these are fields of final
    /// responses.
    static let responseFields =
        UploadFieldName.responseFields + [
            "Location", "Content-Location", "Content-Range", "Accept-Ranges", "ETag", "Repr-Digest", "Retry-After",
            "Accept-Patch", "Content-Disposition", "Link", "Allow", "Date", "WWW-Authenticate", ServerFieldName.explain,
        ]

    /// The CORS fields of every response to a request.
    func responseFields(for request: Fields) -> Fields {
        var fields: Fields = ["Vary": "Origin"]
        guard let origin = request["Origin"], origins.contains(origin) || origins.contains("*") else { return fields }
        fields.append("Access-Control-Allow-Origin", origins.contains("*") ? "*" : origin)
        fields.append("Access-Control-Expose-Headers", Self.responseFields.joined(separator: ", "))
        return fields
    }

    /// Whether a request is a CORS preflight.
    static func isPreflight(_ request: Fields) -> Bool {
        request.contains("Origin") && request.contains("Access-Control-Request-Method")
    }

    /// The additional fields of a response to `OPTIONS`. For a preflight of an allowed origin they list the methods and
    /// fields that the page may send; `Vary` is always present.
    func optionsFields(for request: Fields, methods: [Method]) -> Fields {
        var fields: Fields = ["Vary": "Access-Control-Request-Method, Access-Control-Request-Headers"]
        guard Self.isPreflight(request), responseFields(for: request).contains("Access-Control-Allow-Origin")
        else { return fields }
        fields.append("Access-Control-Allow-Methods", methods.map(\.rawValue).joined(separator: ", "))
        fields.append("Access-Control-Allow-Headers", Self.allowedFields(for: request).joined(separator: ", "))
        fields.append("Access-Control-Max-Age", "86400")
        return fields
    }

    // MARK: Fields that the page requests

    /// The maximum length of `Access-Control-Request-Headers` in bytes; a longer list is ignored.
    static let maxRequestedLength = 4096

    /// The names in ``requestFields``, and the allowed names in the field `Access-Control-Request-Headers` of a
    /// preflight.
    ///
    /// A list that is malformed or too long is ignored entirely.
    private static func allowedFields(for request: Fields) -> [String] {
        var known = Set(requestFields.map { $0.lowercased() })
        return requestFields
            + requestedFields(request).filter { isAllowed($0) && known.insert($0.lowercased()).inserted }
    }

    private static func requestedFields(_ request: Fields) -> [String] {
        guard let list = request["Access-Control-Request-Headers"], list.utf8.count <= maxRequestedLength else {
            return []
        }
        var names: [String] = []
        for member in list.split(separator: ",", omittingEmptySubsequences: false) {
            let words = member.split { $0 == " " || $0 == "\t" }
            guard words.count == 1, Fields.isValidName(String(words[0])) else { return [] }
            names.append(String(words[0]))
        }
        return names
    }

    /// Whether the server may allow a page to set the field. Browsers themselves never allow the names in `forbidden`
    /// and those with the prefixes `proxy-` and `sec-` (Fetch standard, forbidden request-header), and only proxies may
    /// set forwarding fields. For browsers the name `*` means all names.
    private static func isAllowed(_ name: String) -> Bool {
        let name = name.lowercased()
        return name != "*" && !forbidden.contains(name) && !name.hasPrefix("proxy-") && !name.hasPrefix("sec-")
            && !TrustedProxies.isForwardingField(name)
    }

    private static let forbidden: Set = [
        "accept-charset", "accept-encoding", "access-control-request-headers", "access-control-request-method",
        "access-control-request-private-network", "connection", "content-length", "cookie", "cookie2", "date", "dnt",
        "expect", "host", "keep-alive", "origin", "referer", "set-cookie", "te", "trailer", "transfer-encoding",
        "upgrade", "via",
    ]
}
