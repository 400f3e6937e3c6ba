import Foundation
import HTTPSemantics

/// An absolute http or https URI, without userinfo and fragment, against which references are resolved (RFC 3986
/// section 5).
package struct RequestURI: Sendable, Hashable {
    /// The absolute URI, without userinfo and fragment.
    package let text: String
    /// The scheme in lower case.
    package let scheme: String
    /// The host in lower case.
    package let host: String
    package let port: Int
    /// `user:password` without percent-encoding; `nil` if the text had none.
    package let userinfo: String?

    /// Parses a URI; returns `nil` for anything but an absolute http or https URI with a host.
    package init?(_ text: String) {
        guard let components = URLComponents(string: text) else { return nil }
        self.init(components)
    }

    /// Converts a URL; returns `nil` for anything but an absolute http or https URL with a host.
    package init?(_ url: URL) { self.init(url.absoluteString) }

    private init?(_ given: URLComponents) {
        var components = given
        guard let scheme = components.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = components.host?.lowercased(), !host.isEmpty
        else { return nil }
        userinfo = components.user.map { "\($0):\(components.password ?? "")" }
        components.user = nil
        components.password = nil
        components.fragment = nil
        guard let text = components.string else { return nil }
        self.text = text
        self.scheme = scheme
        self.host = host
        port = components.port ?? (scheme == "https" ? 443 : 80)
    }

    /// The URI with this path in place of path and query of `base`.
    private init(_ base: RequestURI, path: String) {
        text = base.text[..<base.authorityEnd] + path
        scheme = base.scheme
        host = base.host
        port = base.port
        userinfo = nil
    }

    private var authorityEnd: String.Index {
        let start = text.utf8.index(text.startIndex, offsetBy: scheme.utf8.count + "://".utf8.count)
        return text.utf8[start...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? text.endIndex
    }

    /// The port of an absolute http or https URI, which is not checked; `nil` if the port is no number.
    static func port(of uri: String) -> Int? {
        let separator = "://".utf8
        guard let start = uri.utf8.firstIndex(of: UInt8(ascii: ":")), uri.utf8[start...].starts(with: separator)
        else { return nil }
        let authority = uri.utf8[start...].dropFirst(separator.count)
            .prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard let colon = authority.lastIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "]") }),
            authority[colon] == UInt8(ascii: ":")
        else { return uri.hasPrefixIgnoringASCIICase("https:") ? 443 : 80 }
        return Int(Substring(authority[authority.index(after: colon)...]))
    }

    /// The URI with the path `/` and without query.
    package var root: String { text[..<authorityEnd] + "/" }

    /// Host and port, for messages.
    package var authority: String {
        (host.utf8.contains(UInt8(ascii: ":")) && !host.hasPrefix("[") ? "[\(host)]" : host) + ":\(port)"
    }

    /// Resolves a reference in a response to a request for this URI; `nil` if the result is not an http or https URI.
    package func resolving(_ reference: String) -> RequestURI? {
        if Self.isPlainPath(reference) { return RequestURI(self, path: reference) }
        guard !reference.isEmpty, let base = URL(string: text),
            let url = URL(string: reference, relativeTo: base)?.absoluteURL
        else { return nil }
        return RequestURI(url.absoluteString)
    }

    /// Whether a reference is an absolute path that needs no normalization: it has only unreserved characters, and no
    /// empty or dot segments. Such a reference, which most servers send, is resolved without parsing.
    private static func isPlainPath(_ reference: String) -> Bool {
        var isSegmentStart = false
        return reference.hasPrefix("/")
            && reference.utf8.allSatisfy { byte in
                let isSlash = byte == UInt8(ascii: "/")
                defer { isSegmentStart = isSlash }
                return isSegmentStart && (isSlash || byte == UInt8(ascii: ".")) ? false : isSlash || byte.isUnreserved
            }
    }

    /// Resolves a reference and compares it with this URI.
    package func location(_ reference: String) -> ResolvedLocation? {
        resolving(reference).map { ResolvedLocation(uri: $0.text, relation: relation(of: $0)) }
    }

    /// Whether both belong to one origin (RFC 6454).
    package func hasSameOrigin(as other: RequestURI) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    private func relation(of other: RequestURI) -> ResolvedLocation.Relation {
        if scheme == "https" && other.scheme == "http" { return .insecure }
        return hasSameOrigin(as: other) ? .sameOrigin : .otherOrigin
    }

    /// The value of `Authorization` for the userinfo (RFC 7617); `nil` without userinfo.
    package var basicCredentials: String? { userinfo.map(BasicCredentials.authorization) }
}
