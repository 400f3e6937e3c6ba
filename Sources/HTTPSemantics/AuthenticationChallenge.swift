import StructuredFields

/// A challenge in `WWW-Authenticate` or `Proxy-Authenticate`: an authentication scheme and its parameters (RFC 9110
/// section 11.6.1).
package struct AuthenticationChallenge: Sendable, Hashable {
    /// The authentication scheme in lower case, such as `basic`.
    package let scheme: String
    /// The single value that some schemes send in place of parameters; `nil` if there is none.
    package let token68: String?
    /// The values of the parameters, without quotes, by their names in lower case.
    package let parameters: [String: String]

    package init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme.asciiLowercased
        self.token68 = token68
        self.parameters = parameters
    }

    /// Parses the lines of a field, in order. Each line can have several challenges.
    ///
    /// A malformed line is skipped completely, and the other lines are used. A line is also malformed if a parameter
    /// has no scheme before it, follows a `token68`, or occurs twice in one challenge.
    package static func challenges(parsing lines: [String]) -> [AuthenticationChallenge] {
        lines.flatMap { challenges(parsing: $0) ?? [] }
    }

    private static func challenges(parsing line: String) -> [AuthenticationChallenge]? {
        var scanner = FieldValueScanner(line)
        guard let elements = scanner.list(of: { $0.challengeElement() }) else { return nil }
        var challenges: [AuthenticationChallenge] = []
        for element in elements {
            switch element {
            case .scheme(let scheme, nil): challenges.append(AuthenticationChallenge(scheme: scheme))
            case .scheme(let scheme, .token68(let value)?):
                challenges.append(AuthenticationChallenge(scheme: scheme, token68: value))
            case .scheme(let scheme, .parameter(let name, let value)?):
                challenges.append(AuthenticationChallenge(scheme: scheme, parameters: [name: value]))
            case .parameter(let name, let value):
                guard let last = challenges.popLast()?.adding(name, value) else { return nil }
                challenges.append(last)
            }
        }
        return challenges
    }

    private func adding(_ name: String, _ value: String) -> AuthenticationChallenge? {
        guard token68 == nil, parameters[name] == nil else { return nil }
        return AuthenticationChallenge(scheme: scheme, parameters: parameters.merging([name: value]) { $1 })
    }
}

/// The credentials of the scheme Basic (RFC 7617).
package enum BasicCredentials {
    /// The value of `Authorization`.
    /// - Parameter userinfo: the user, a colon and the password.
    package static func authorization(_ userinfo: String) -> String {
        "Basic " + Array(userinfo.utf8).base64
    }
}

/// An element of the list in a field with challenges. The parameters of a challenge are elements of the same list.
private enum ChallengeElement {
    enum Content {
        case token68(String)
        case parameter(name: String, value: String)
    }

    /// The beginning of a challenge, with its first parameter.
    case scheme(String, Content?)
    case parameter(name: String, value: String)
}

extension FieldValueScanner {
    fileprivate mutating func challengeElement() -> ChallengeElement? {
        if let (name, value) = completeParameter() { return .parameter(name: name, value: value) }
        guard let scheme = token() else { return nil }
        guard next == UInt8(ascii: " ") else { return .scheme(scheme, nil) }
        skipOptionalWhitespace()
        if isAtEnd || next == UInt8(ascii: ",") { return .scheme(scheme, nil) }
        // A token68 can begin like a parameter ("abc=").
        if let (name, value) = completeParameter() { return .scheme(scheme, .parameter(name: name, value: value)) }
        return token68().map { .scheme(scheme, .token68($0)) }
    }

    /// A parameter that is an entire element of a list; if there is none, nothing is consumed.
    private mutating func completeParameter() -> (name: String, value: String)? {
        let start = self
        if let parameter = parameter(isWhitespaceAllowed: true) {
            var ahead = self
            ahead.skipOptionalWhitespace()
            if ahead.isAtEnd || ahead.next == UInt8(ascii: ",") { return parameter }
        }
        self = start
        return nil
    }

    /// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
    private mutating func token68() -> String? {
        let characters = run { $0.isUnreserved || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
        guard !characters.isEmpty else { return nil }
        return String(decoding: characters + run { $0 == UInt8(ascii: "=") }, as: UTF8.self)
    }
}
