/// The directives of a Cache-Control field (RFC 9111 section 5.2).
public struct CacheControl: Sendable, Hashable {
    private struct Directive: Sendable, Hashable {
        /// The name in lower case.
        let name: String
        /// The argument; if it was a quoted string, with quotes.
        let argument: String?

        var serialized: String { argument.map { "\(name)=\($0)" } ?? name }
    }

    private var directives: [Directive]

    /// `no-cache`: a cache must validate a stored response with the server before each use.
    public static let noCache = CacheControl(directives: [Directive(name: "no-cache", argument: nil)])

    private init(directives: [Directive]) { self.directives = directives }

    /// Parses a field value. Returns `nil` if it is malformed or has no directive. Unknown directives are kept.
    public init?(parsing value: String) {
        var scanner = FieldValueScanner(value)
        let directives = scanner.list { scanner -> Directive? in
            guard let name = scanner.token() else { return nil }
            guard scanner.consume("=") else { return Directive(name: name.asciiLowercased, argument: nil) }
            let isQuoted = scanner.next == UInt8(ascii: "\"")
            guard let argument = isQuoted ? scanner.quotedString()?.quoted : scanner.token() else { return nil }
            return Directive(name: name.asciiLowercased, argument: argument)
        }
        guard let directives, !directives.isEmpty else { return nil }
        self.directives = directives
    }

    /// The field value: the directives in order, separated by commas.
    public var serialized: String { directives.map(\.serialized).joined(separator: ", ") }

    /// The first directive about shared caches: `public` or `s-maxage`; `nil` if there is none.
    public var sharingDirective: String? {
        directives.first { $0.name == "public" || $0.name == "s-maxage" }?.name
    }

    /// The directives for a response to one user: `private` is added unless it is already present without field names.
    public var forOneUser: CacheControl {
        let privateDirective = Directive(name: "private", argument: nil)
        return directives.contains(privateDirective) ? self : CacheControl(directives: [privateDirective] + directives)
    }
}
