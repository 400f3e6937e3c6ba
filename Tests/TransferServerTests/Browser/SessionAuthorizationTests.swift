import HTTPSemantics
import SystemCalls
import Testing

@testable import TransferServer

@Suite("Authorization with the cookie of a session")
struct SessionAuthorizationTests {
    private static let text = """
        all token-of-all-0001 read,create,write,admin
        maker token-of-maker-01 create
        box token-of-box-0001 read,create prefix=/files/box/
        """

    private func identity(
        _ method: HTTPSemantics.Method = .get, _ fields: Fields = [:], token: String = "token-of-all-0001",
        of principal: String = "all", publicRead: Bool = false
    ) throws(AuthorizationRefusal) -> (identity: Identity, authorizer: TokenAuthorizer) {
        let list = (try? TokenList(parsing: Self.text)) ?? TokenList()
        let authorizer = TokenAuthorizer(list, isPublicReadingAllowed: publicRead)
        let value =
            SessionCookie.value(forToken: token, of: principal, expiry: SystemClock.realtimeSeconds() + 60) ?? ""
        let head = RequestHead(
            method: method, target: "/files/x",
            fields: ["Host": "files.example", "Cookie": "\(SessionCookie.name)=\(value)"] + fields)
        return (try authorizer.identify(head, target: RequestTarget(parsing: "/files/x")!), authorizer)
    }

    @Test("GET and HEAD accept the cookie")
    func reads() throws {
        for method in [HTTPSemantics.Method.get, .head] {
            #expect(try identity(method).identity.principal == "all")
        }
    }

    @Test(
        "no other method accepts the cookie",
        arguments: ["OPTIONS", "PUT", "POST", "PATCH", "DELETE", "TRACE", "get", "LIST"])
    func methods(name: String) {
        #expect(throws: AuthorizationRefusal.self) { try identity(HTTPSemantics.Method(rawValue: name)) }
        #expect(throws: AuthorizationRefusal.self) {
            try identity(HTTPSemantics.Method(rawValue: name), publicRead: true)
        }
    }

    @Test(
        "a request that another origin may have caused is not accepted",
        arguments: [
            (["Sec-Fetch-Site": "same-origin"], true), (["Sec-Fetch-Site": "none"], true), ([:], true),
            (["Sec-Fetch-Site": "same-site"], false), (["Sec-Fetch-Site": "cross-site"], false),
            (["Sec-Fetch-Site": ""], false), (["Sec-Fetch-Site": "none", "sec-fetch-site": "cross-site"], false),
            (["Origin": "https://other.example"], false), (["Origin": "null"], false),
            (["Origin": "http://files.example", "Sec-Fetch-Site": "same-origin"], false),
        ] as [(Fields, Bool)])
    func origins(fields: Fields, isAccepted: Bool) throws {
        if isAccepted {
            #expect(try identity(.get, fields).identity.principal == "all")
        } else {
            let refusal = #expect(throws: AuthorizationRefusal.self) { try identity(.get, fields) }
            #expect(refusal?.problem.code == "missing-token")
            // A public file can also be read with the rejected cookie.
            #expect(try identity(.get, fields, publicRead: true).identity == .anonymous)
        }
    }

    @Test("a token has precedence over the cookie, even if it is not valid")
    func token() throws {
        #expect(
            try identity(.get, ["Authorization": "Bearer token-of-maker-01"]).identity.principal == "maker")
        for value in ["Bearer token-of-nobody-1", "Basic eDp5", ""] {
            let refusal = #expect(throws: AuthorizationRefusal.self) { try identity(.get, ["Authorization": value]) }
            #expect(refusal?.problem.code == "invalid-token", "\(value)")
        }
    }

    @Test("the cookie allows only reading, within the scopes and the prefix of its token")
    func operations() throws {
        func allowed(_ path: String, _ token: String, of principal: String) throws -> Set<AccessOperation> {
            let (identity, authorizer) = try identity(token: token, of: principal)
            let path = try PathSegments(decoding: path)
            return Set(AccessOperation.allCases.filter { authorizer.refusal(of: identity, $0, at: path) == nil })
        }
        #expect(try allowed("/files/x", "token-of-all-0001", of: "all") == [.read])
        #expect(try allowed("/files/x", "token-of-maker-01", of: "maker") == [])
        #expect(try allowed("/files/box/x", "token-of-box-0001", of: "box") == [.read])
        #expect(try allowed("/files/x", "token-of-box-0001", of: "box") == [])
    }

    @Test("after the removal of the token, an identity of the cookie may do nothing")
    func removal() throws {
        let (identity, authorizer) = try identity()
        let path = try PathSegments(decoding: "/files/x")
        #expect(authorizer.refusal(of: identity, .read, at: path) == nil)
        authorizer.replace(with: try TokenList(parsing: "all another-token-0001"))
        #expect(authorizer.refusal(of: identity, .read, at: path)?.problem.status == 401)
    }

    @Test("only a token with the scope admin has it; it includes no other scope, and no other scope includes it")
    func admin() throws {
        let list = try TokenList(
            parsing: "a token-of-a-00000001\nb token-of-b-00000001 admin\nc token-of-c-0001 write,admin")
        #expect(list.tokens.map(\.scopes) == [[.read, .create, .write], [.admin], [.write, .admin]])
        for operation in AccessOperation.allCases where operation != .discover {
            #expect(!list.tokens[1].allows(operation))
        }
        let usage = Routes([]).usagePath
        #expect(list.tokens.map { $0.allowsReadingUsage(at: usage) } == [false, true, true])
        let limited = try TokenList(
            parsing: "a token-of-a-00000001 admin prefix=/files/\nb token-of-b-00000001 admin prefix=/onward/usage/")
        #expect(limited.tokens.map { $0.allowsReadingUsage(at: usage) } == [false, true])
    }
}

@Suite("The source of a request for a session")
struct RequestSourceTests {
    @Test(
        "only a page of the server's own origin is its source",
        arguments: [
            ([:], "http", "files.example", false),
            (["Origin": "http://files.example"], "http", "files.example", true),
            (["Origin": "http://files.example"], "http", "FILES.example:80", true),
            (["Origin": "https://files.example"], "https", "files.example:443", true),
            (["Origin": "http://files.example:8080"], "http", "files.example:8080", true),
            (["Origin": "http://[::1]:8080"], "http", "[::1]:8080", true),
            (["Origin": "http://files.example"], "https", "files.example", false),
            (["Origin": "http://files.example:8080"], "http", "files.example", false),
            (["Origin": "http://other.example"], "http", "files.example", false),
            (["Origin": "http://files.example.other.example"], "http", "files.example", false),
            (["Origin": "null"], "http", "files.example", false), (["Origin": ""], "http", "files.example", false),
            (["Origin": "http://files.example"], "http", nil, false),
            (["Origin": "http://"], "http", "", false),
            (["Origin": "http://files.example", "origin": "http://other.example"], "http", "files.example", false),
            // A proxy has changed the host.
            (["Origin": "https://files.example", "Sec-Fetch-Site": "same-origin"], "http", "backend:8080", true),
            (["Origin": "http://files.example", "Sec-Fetch-Site": "same-site"], "http", "files.example", false),
            (["Origin": "http://files.example", "Sec-Fetch-Site": "cross-site"], "http", "files.example", false),
            (["Sec-Fetch-Site": "none"], "http", "files.example", false),
            (["Sec-Fetch-Site": "same-origin", "sec-fetch-site": "cross-site"], "http", "files.example", false),
        ] as [(Fields, String, String?, Bool)])
    func origins(fields: Fields, scheme: String, authority: String?, isOwn: Bool) {
        #expect(RequestSource(fields, scheme: scheme, authority: authority).isOwnPage == isOwn)
    }
}
