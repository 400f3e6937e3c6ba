import HTTPSemantics

/// Why a request is not served.
public struct AuthorizationRefusal: Error, Sendable {
    public let problem: ProblemDetails
    /// The value of `WWW-Authenticate` (RFC 9110 section 11.6.1), which every 401 has.
    public let challenge: String?

    /// The request lacks valid credentials: 401.
    public static func unauthenticated(
        code: String, detail: String, challenge: String
    ) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 401, detail: detail, code: code), challenge: challenge)
    }

    /// Whoever sends it may not do that: 403.
    public static func forbidden(code: String, detail: String, challenge: String? = nil) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 403, detail: detail, code: code), challenge: challenge)
    }

    /// Whether other credentials are all that is missing.
    var isForLackOfCredentials: Bool { problem.status == 401 }

    var fields: Fields {
        var fields: Fields = ["Cache-Control": "no-store"]
        if let challenge { fields.append("WWW-Authenticate", challenge) }
        return fields
    }
}
