import Digests
import HTTPSemantics
import UploadStorage

/// The tokens of a server: the content of a token file.
///
/// A line has the form `NAME TOKEN [SCOPES] [prefix=/files/x/]…`, separated by white space; SCOPES are names of
/// ``TokenScope`` separated by commas, by default all but `admin`; `#` begins a comment. TOKEN is a bearer token (RFC 6750 section
/// 2.1), or `sha256:` and the hexadecimal SHA-256 of a bearer token. Several lines can have the same name: their tokens
/// share uploads and quota.
public struct TokenList: Sendable, Hashable {
    /// An error in a token file.
    public struct Malformed: Error, Sendable, Hashable {
        /// The number of the line, starting with 1.
        public let line: Int
        /// The error in words, without any token.
        public let reason: String
    }

    struct Token: Sendable, Hashable {
        let name: String
        /// The SHA-256 of the token. The token itself is not kept.
        let digest: [UInt8]
        /// The digest as text, used as ``Identity/credential``.
        let credential: String
        let scopes: Set<TokenScope>
        /// The paths for which the token is valid; without prefixes the token is valid everywhere.
        let prefixes: [Prefix]
    }

    /// The value of `prefix=`: a path and everything below it, or, with a slash at its end, only what is below it.
    struct Prefix: Sendable, Hashable {
        /// The decoded segments.
        let segments: [String]
        let isPathItselfIncluded: Bool
    }

    private(set) var tokens: [Token] = []
    /// The number of tokens.
    public var count: Int { tokens.count }
    /// The names with a token so short that it can be guessed.
    public private(set) var namesWithShortTokens: [String] = []

    /// A list without tokens.
    public init() {}

    /// Parses the content of a token file.
    /// - Throws: ``Malformed`` for the first line with an error.
    public init(parsing text: String) throws(Malformed) {
        // CR and LF together are one Character, so they end one line.
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }.map(String.init)
            guard !words.isEmpty else { continue }
            do throws(Reason) { try append(words) } catch { throw Malformed(line: index + 1, reason: error.text) }
        }
    }

    private struct Reason: Error {
        let text: String
    }

    private mutating func append(_ words: [String]) throws(Reason) {
        guard words.count >= 2 else {
            throw Reason(text: "a line must have the form NAME TOKEN [SCOPES] [prefix=/files/x/]")
        }
        let name = words[0]
        guard name.utf8.count <= 64, name.utf8.allSatisfy(Self.isNameByte) else {
            throw Reason(text: "the name must have 1 to 64 characters: letters, digits, and . _ - @")
        }
        guard name != Identity.anonymous.principal else {
            throw Reason(text: "the name \(name) is reserved for clients without a token")
        }
        let digest = try digest(of: words[1], name: name)
        var scopes: Set<TokenScope>?
        var prefixes: [Prefix] = []
        for word in words.dropFirst(2) {
            if word.hasPrefix("prefix=") {
                prefixes.append(try prefix(String(word.dropFirst(7))))
            } else if scopes == nil && prefixes.isEmpty {
                scopes = try self.scopes(word)
            } else {
                throw Reason(text: "'\(word)' does not have the form prefix=/files/x/")
            }
        }
        guard !tokens.contains(where: { $0.digest == digest }) else {
            throw Reason(text: "another line has the same token")
        }
        tokens.append(
            Token(
                name: name, digest: digest, credential: digest.hexadecimal, scopes: scopes ?? [.read, .create, .write],
                prefixes: prefixes))
    }

    // Error texts must not contain a token, because they are logged.
    private mutating func digest(of token: String, name: String) throws(Reason) -> [UInt8] {
        if token.hasPrefix("sha256:") {
            let digits = Array(token.utf8.dropFirst(7))
            let values = digits.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt8.init) }
            guard digits.count == 64, values.count == 64 else {
                throw Reason(text: "sha256: must be followed by 64 hexadecimal digits")
            }
            return (0..<32).map { values[2 * $0] << 4 | values[2 * $0 + 1] }
        }
        guard Self.isBearerToken(token) else {
            throw Reason(text: "the token must consist of letters, digits, and - . _ ~ + /, with = only at its end")
        }
        if token.utf8.count < 16 && !namesWithShortTokens.contains(name) { namesWithShortTokens.append(name) }
        return Self.digest(token)
    }

    private func scopes(_ word: String) throws(Reason) -> Set<TokenScope> {
        var scopes: Set<TokenScope> = []
        for part in word.split(separator: ",", omittingEmptySubsequences: false) {
            guard let scope = TokenScope(rawValue: String(part)) else {
                throw Reason(text: "'\(part)' is not one of the scopes read, create, write, admin")
            }
            scopes.insert(scope)
        }
        return scopes
    }

    private func prefix(_ text: String) throws(Reason) -> Prefix {
        guard let path = try? PathSegments(decoding: text), !path.segments.isEmpty else {
            throw Reason(
                text:
                    "'prefix=\(text)' must be a path of the server, such as /files/x/, or /x for /x and all paths below it"
            )
        }
        return Prefix(segments: path.segments, isPathItselfIncluded: !path.hasTrailingSlash)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x40: true
        default: false
        }
    }

    /// Whether the text is a `b64token` (RFC 6750 section 2.1).
    static func isBearerToken(_ text: String) -> Bool {
        let body = text.utf8.prefix { $0 != 0x3D }
        return !body.isEmpty && text.utf8.dropFirst(body.count).allSatisfy { $0 == 0x3D }
            && body.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E, 0x2B, 0x2F: true
                default: false
                }
            }
    }

    static func digest(_ token: String) -> [UInt8] { digest(Array(token.utf8)) }

    static func digest(_ token: [UInt8]) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        token.withUnsafeBytes { digest.update($0) }
        return digest.finalized()
    }

    /// The token with this digest. All tokens and all bytes are compared, so that the duration of the comparison
    /// reveals nothing about them.
    func token(withDigest digest: [UInt8]) -> Token? {
        var found: Token?
        for token in tokens where Self.isEqual(token.digest, digest) { found = token }
        return found
    }

    /// Compares all bytes, even after a difference.
    static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}

/// The scope of a token: a set of operations.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum TokenScope: String, Sendable, Hashable, CaseIterable {
    /// Read files and listings.
    case read
    /// Create files with new names.
    case create
    /// Create, replace and delete files.
    case write
    /// Read the usage of all principals and the free space. No other scope includes it.
    case admin
}
