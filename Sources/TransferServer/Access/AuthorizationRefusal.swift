import HTTPSemantics

/// Why a request is not authorized.
public struct AuthorizationRefusal: Error, Sendable {
    /// The problem document of the response, with its status.
    public let problem: ProblemDetails
    /// The value of `WWW-Authenticate` (RFC 9110 section 11.6.1), which a 401 requires; `nil` for a response without
    /// this field.
    public let challenge: String?

    /// A refusal of a request without valid credentials: 401.
    public static func unauthenticated(
        code: String, detail: String, challenge: String
    ) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 401, detail: detail, code: code), challenge: challenge)
    }

    /// A refusal of an operation that the identity may not perform: 403.
    public static func forbidden(code: String, detail: String, challenge: String? = nil) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 403, detail: detail, code: code), challenge: challenge)
    }

    /// Whether the request may succeed with other credentials.
    var isUnauthenticated: Bool { problem.status == 401 }

    var fields: Fields {
        var fields: Fields = ["Cache-Control": "no-store"]
        if let challenge { fields.append("WWW-Authenticate", challenge) }
        return fields
    }
}

extension Response {
    /// The response to a request that is not authorized.
    init(_ refusal: AuthorizationRefusal) { self.init(refusal.problem, fields: refusal.fields) }
}
