import HTTPSemantics

/// What stands before the server's own paths where clients see them: nothing, a prefix that a proxy takes off, or a
/// whole URL.
public struct PublicBase: Sendable, Hashable, CustomStringConvertible {
    /// Empty, `/prefix` or `https://host/prefix`; never with a slash at its end.
    public let description: String

    /// The server's paths are those that clients see.
    public init() { description = "" }

    /// A URL such as `https://files.example/inbox/`, as `--public-url` has it. Nil unless it is one of http or https,
    /// without user information, query and fragment, whose path could be served.
    public init?(url: String) {
        guard let target = RequestTarget(parsing: url), target.form == .absolute, target.query == nil,
            let scheme = target.scheme, let authority = target.authority.flatMap(Authority.init(parsing:)),
            let path = Self.prefix(target.path)
        else { return nil }
        description = "\(scheme)://\(authority.serialized)\(path)"
    }

    /// A prefix such as `/inbox`, as `X-Forwarded-Prefix` has it. Nil unless it is a path, in which two slashes in a row
    /// would name another host.
    public init?(prefix: String) {
        guard let path = Self.prefix(prefix) else { return nil }
        description = path
    }

    private static func prefix(_ path: String) -> String? {
        guard let segments = try? PathSegments(decoding: path).segments else { return nil }
        return segments.isEmpty ? "" : (try? PathSegments(segments: segments))?.percentEncoded
    }

    /// The URL, or reference, that clients know a path of the server by.
    public func reference(to path: String) -> String { description + path }

    /// The fields of a response with references to the server's own paths as clients know them.
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
