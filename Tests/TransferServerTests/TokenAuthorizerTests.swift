import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("Tokens")
struct TokenAuthorizerTests {
    private static let text = """
        all token-of-all
        reader token-of-reader read
        maker token-of-maker create
        box token-of-box create,read prefix=/files/box/
        """

    private func authorizer(_ text: String = Self.text, publicRead: Bool = false) throws -> TokenAuthorizer {
        TokenAuthorizer(try TokenList(parsing: text), isPublicReadingAllowed: publicRead)
    }

    private func identify(
        _ authorizer: TokenAuthorizer, _ values: [String], method: Method = .get
    ) throws(AuthorizationRefusal) -> Identity {
        var fields: Fields = ["Host": "files.example"]
        for value in values { fields.append("Authorization", value) }
        let head = RequestHead(method: method, target: "/files/x", version: .http11, fields: fields)
        return try authorizer.identify(head, target: RequestTarget(parsing: "/files/x")!)
    }

    private func allowed(_ authorizer: TokenAuthorizer, _ token: String, at path: String) throws -> Set<AccessOperation>
    {
        let identity = try identify(authorizer, ["Bearer " + token])
        let path = try PathSegments(decoding: path)
        return Set(AccessOperation.allCases.filter { authorizer.refusal(of: identity, $0, at: path) == nil })
    }

    @Test("A token identifies its principal; the scheme is case-insensitive")
    func names() throws {
        let authorizer = try authorizer()
        for value in ["Bearer token-of-maker", "bearer token-of-maker", "BEARER   token-of-maker"] {
            #expect(try identify(authorizer, [value]).principal == "maker")
        }
    }

    @Test(
        "Requests with missing, unknown, malformed or several tokens get 401 with a challenge",
        arguments: [
            [], [""], ["Bearer"], ["Bearer "], ["Bearer token-of-make"], ["Bearer token-of-makers"],
            ["Basic bWFrZXI6eA=="], ["token-of-maker"], ["Bearer token-of-maker", "Bearer token-of-maker"],
            ["Bearer token-of-maker, Bearer token-of-all"], ["Bearer\ttoken-of-maker"], ["Bearer token of maker"],
        ])
    func unknown(values: [String]) throws {
        for publicRead in [false, true] where !(values.isEmpty && publicRead) {
            let authorizer = try authorizer(publicRead: publicRead)
            let refusal = #expect(throws: AuthorizationRefusal.self) { try identify(authorizer, values) }
            #expect(refusal?.problem.status == 401)
            #expect(refusal?.fields["WWW-Authenticate"]?.hasPrefix("Bearer realm=") == true)
            #expect(refusal?.problem.code == (values.isEmpty ? "missing-token" : "invalid-token"))
        }
    }

    @Test("A token allows the operations of its scopes")
    func scopes() throws {
        let authorizer = try authorizer()
        #expect(
            try allowed(authorizer, "token-of-all", at: "/files/x") == [
                .discover, .read, .readApplication, .readMetrics, .create, .write,
            ])
        #expect(
            try allowed(authorizer, "token-of-reader", at: "/files/x") == [
                .discover, .read, .readApplication, .readMetrics,
            ])
        #expect(try allowed(authorizer, "token-of-maker", at: "/files/x") == [.discover, .create])
    }

    @Test(
        "A token with a prefix is valid only below that prefix",
        arguments: [
            ("/files/box/x", true), ("/files/box/", true), ("/files/box/a/b", true), ("/files/box", false),
            ("/files/boxes/x", false), ("/files/x", false), ("/files/", false), ("/files/%62ox/x", true),
            ("/other/box/x", false),
        ])
    func prefixes(path: String, isCovered: Bool) throws {
        #expect(
            try allowed(authorizer(), "token-of-box", at: path)
                == (isCovered ? [.discover, .read, .readApplication, .readMetrics, .create] : []))
    }

    @Test(
        "A prefix without a slash at its end includes the path itself",
        arguments: [
            ("/upload", true), ("/upload/", true), ("/upload/x", true), ("/%75pload", true), ("/upload/a/b/", true),
            ("/uploads", false), ("/uploads/x", false), ("/uploa", false), ("/", false), ("/x/upload", false),
            ("/Upload", false), ("/files/box/", true), ("/files/box", false),
        ])
    func prefixesWithoutSlash(path: String, isCovered: Bool) throws {
        let authorizer = try authorizer("a token-token-token prefix=/upload prefix=/files/box/")
        #expect(try allowed(authorizer, "token-token-token", at: path).contains(.create) == isCovered)
    }

    @Test("A prefix matches by bytes: two Unicode spellings of the same letter (é, e + U+0301) are different")
    func lookAlikes() throws {
        let authorizer = try authorizer("a token-token-token prefix=/files/%C3%A9/")
        #expect(try allowed(authorizer, "token-token-token", at: "/files/%C3%A9/x").contains(.read))
        #expect(try allowed(authorizer, "token-token-token", at: "/files/e%CC%81/x").isEmpty)
    }

    @Test("With public reading no token is needed to read")
    func publicReading() throws {
        let authorizer = try authorizer(publicRead: true)
        let unidentified = try identify(authorizer, [])
        let path = try PathSegments(decoding: "/files/x")
        #expect(unidentified == .anonymous)
        #expect(authorizer.refusal(of: unidentified, .read, at: path) == nil)
        for operation in [AccessOperation.discover, .readApplication, .readMetrics, .create, .write] {
            #expect(authorizer.refusal(of: unidentified, operation, at: path)?.problem.status == 401)
        }
        #expect(throws: AuthorizationRefusal.self) { try identify(authorizer, [], method: .put) }
        #expect(try allowed(authorizer, "token-of-maker", at: "/files/x") == [.discover, .read, .create])
        #expect(try allowed(authorizer, "token-of-box", at: "/files/x") == [.read])
    }

    @Test("SEC-05: a revoked token allows no operation, even for an identity that was established before")
    func replacement() throws {
        let authorizer = try authorizer()
        let identity = try identify(authorizer, ["Bearer token-of-all"])
        let path = try PathSegments(decoding: "/files/x")
        #expect(authorizer.refusal(of: identity, .create, at: path) == nil)
        authorizer.replace(with: try TokenList(parsing: "all token-of-all read"))
        #expect(authorizer.refusal(of: identity, .create, at: path)?.problem.status == 403)
        authorizer.replace(with: try TokenList(parsing: "other token-of-all"))
        #expect(authorizer.refusal(of: identity, .create, at: path)?.problem.status == 401)
        authorizer.replace(with: TokenList())
        #expect(authorizer.refusal(of: identity, .create, at: path)?.problem.status == 401)
    }
}
