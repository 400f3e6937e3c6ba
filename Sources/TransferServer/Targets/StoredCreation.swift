import HTTPSemantics

/// The part of a creation that is stored with its upload: the fields that its handler declares, and those that the
/// server needs when the representation is complete. Everything else is discarded after the request.
struct StoredCreation: Sendable {
    /// The maximum size of names, values and query that are stored with one upload, in bytes.
    static let maximumSize = 16 << 10

    /// Fields that are never stored, even if a handler declares them, in lower case.
    private static let credentials: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "cookie2", "set-cookie", "authentication-info",
        "x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-amz-security-token", "x-csrf-token",
        "x-xsrf-token",
    ]

    let fields: Fields
    let target: Target

    init(fields request: Fields, target: Target, handler: any TargetHandler) {
        var stored = Fields()
        func add(_ names: some Sequence<String>) {
            for name in names where request.contains(name) && !stored.contains(name) {
                if Self.credentials.contains(name.lowercased()) { continue }
                for value in request.values(name) { stored.append(name, value) }
            }
        }
        add(handler.storedFields.lazy.filter { !Self.isDigestField($0) })
        stored = handler.storedPart(of: stored)
        add(RepresentationDigests.requestFields)
        fields = stored
        self.target = handler.storesQuery ? target : target.withoutQuery
    }

    /// The part of the stored fields that the handler gets, without the fields that only the server needs.
    static func declared(_ stored: Fields, by handler: any TargetHandler) -> Fields {
        var declared = stored
        for name in RepresentationDigests.requestFields where stored.contains(name) {
            if !handler.storedFields.contains(where: name.equalsIgnoringASCIICase) { declared.remove(name) }
        }
        return declared
    }

    private static func isDigestField(_ name: String) -> Bool {
        RepresentationDigests.requestFields.contains(where: name.equalsIgnoringASCIICase)
    }

    /// The number of bytes that is compared with ``maximumSize``.
    var size: Int {
        fields.reduce(target.query?.utf8.count ?? 0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension ProblemDetails {
    static let storedFieldsTooLarge = ProblemDetails(
        status: 431,
        detail: "The fields that describe the upload have more than \(StoredCreation.maximumSize) bytes together. "
            + "Shorten the longest field, such as Content-Disposition.",
        code: "stored-fields-too-large", members: [("limit", .integer(Int64(StoredCreation.maximumSize)))])
}
