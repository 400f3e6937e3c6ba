import HTTPSemantics

/// The base of the server's paths in URLs for clients: nothing, a prefix that a proxy removes, or a complete URL.
public struct PublicBase: Sendable, Hashable, CustomStringConvertible {
    /// The base: empty, `/prefix` or `https://host/prefix`, without a slash at its end.
    public let description: String

    /// An empty base: clients use the paths of the server.
    public init() { description = "" }

    /// Parses a URL such as `https://files.example/inbox/`, as in `--public-url`. Returns nil if the scheme is not http
    /// or https, the URL has user information, a query or a fragment, or the path is invalid.
    public init?(url: String) {
        guard let target = RequestTarget(parsing: url), target.form == .absolute, target.query == nil,
            let scheme = target.scheme, let authority = target.authority.flatMap(Authority.init(parsing:)),
            let path = Self.prefix(target.path)
        else { return nil }
        description = "\(scheme)://\(authority.serialized)\(path)"
    }

    /// Parses a prefix such as `/inbox`, as in `X-Forwarded-Prefix`. Returns nil if the prefix is not a valid path. Two
    /// slashes in a row are also invalid, because they would begin the name of another host.
    public init?(prefix: String) {
        guard let path = Self.prefix(prefix) else { return nil }
        description = path
    }

    private static func prefix(_ path: String) -> String? {
        guard let segments = try? PathSegments(decoding: path).segments else { return nil }
        return segments.isEmpty ? "" : (try? PathSegments(segments: segments))?.percentEncoded
    }

    /// The URL or relative reference of a path of the server for clients.
    public func reference(to path: String) -> String { description + path }

    /// The fields of a response, with this base before paths of the server.
    func rebased(_ fields: Fields) -> Fields {
        guard !description.isEmpty else { return fields }
        var fields = fields
        for name in ["Location", "Content-Location"] {
            guard let value = fields[name], value.hasPrefix("/"), !value.hasPrefix("//") else { continue }
            fields.set(name, reference(to: value))
        }
        return fields
    }
}
