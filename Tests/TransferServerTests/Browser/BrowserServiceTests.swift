import FoundationEssentials
import HTTPSemantics
import Testing
import UploadStorage

@testable import TransferServer

/// The page, the session and the usage, in this process.
@Suite("The service for browsers", .timeLimit(.minutes(5)))
struct BrowserServiceTests {
    private static let tokens = """
        anna token-of-anna-0001
        root token-of-root-0001 read,admin
        box token-of-box-00001 read,create prefix=/files/box/ prefix=/files/b%20c
        maker token-of-maker-0001 create
        """

    private final class Service {
        let store: UploadStore
        let authorizer: TokenAuthorizer?
        let server: InProcessServer

        init(
            tokens: String? = BrowserServiceTests.tokens, publicRead: Bool = false, page: Bool = true,
            handlers: [(prefix: String, handler: any TargetHandler)] = [],
            _ change: (inout ServerConfiguration) -> Void = { _ in }
        ) throws {
            store = try UploadStore.inMemory(
                configuration: StoreConfiguration(minFree: 0, maxUploadsPerPrincipal: 7, quotaPerPrincipal: 1000))
            authorizer = try tokens.map {
                TokenAuthorizer(try TokenList(parsing: $0), isPublicReadingAllowed: publicRead)
            }
            var configuration = ServerConfiguration(authorizer: authorizer, corsOrigins: ["https://app.example"])
            configuration.hasPage = page
            change(&configuration)
            server = InProcessServer(
                configuration: configuration, store: store,
                handlers: [("files", FilesHandler(store: store))] + handlers)
        }

        deinit { store.close() }

        func send(
            _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields = [:], token: String? = nil,
            content: [UInt8]? = nil
        ) async throws -> Response {
            let authorization: Fields = token.map { ["Authorization": "Bearer token-of-\($0)"] } ?? [:]
            return try await server.send(method, target, fields: fields + authorization, content: content)
        }

        func begin(token: String?, _ fields: Fields = ["Sec-Fetch-Site": "same-origin"]) async throws -> Response {
            try await send(.post, "/onward/session", fields, token: token)
        }

        /// The value of `Cookie` for a token.
        func cookie(token: String) async throws -> String {
            let field = try #require(try await begin(token: token).fields["Set-Cookie"])
            return String(field.prefix { $0 != ";" })
        }
    }

    private static let html: Fields = ["Accept": "text/html,*/*;q=0.8"]

    private func text(_ response: Response) throws -> String {
        String(decoding: try #require(response.content.bytes), as: UTF8.self)
    }

    // MARK: The page

    @Test("the page of a folder has a row for each entry, and the plain listing stays as it was")
    func page() async throws {
        let service = try Service()
        #expect(try await service.send(.put, "/files/a%20b/c%26d", token: "anna-0001", content: [1, 2]).status == 201)
        let plain = try await Service(page: false).send(.get, "/files/", token: "anna-0001")
        let page = try await service.send(.get, "/files/a%20b/", Self.html, token: "anna-0001")
        #expect(page.status == 200 && page.fields["Vary"] == "Accept, Origin")
        #expect(
            page.fields["Cache-Control"] == "no-cache, private" || page.fields["Cache-Control"] == "private, no-cache")
        #expect(page.fields["Content-Security-Policy"]?.contains("script-src 'sha256-") == true)
        #expect(page.fields["Cross-Origin-Resource-Policy"] == "same-origin")
        #expect(try text(page).contains(" data-base=\"/\" data-folder=\"/files/a%20b/\" data-version="))
        #expect(try text(page).contains("<tbody><tr data-size=\"2\" data-modified=\""))
        #expect(try text(page).contains("<a href=\"./c&amp;d\">c&amp;d</a>"))
        for absent in ["data-status", "data-more"] { #expect(try !text(page).contains(absent), "\(absent)") }
        for accept in [nil, "*/*", "application/xhtml+xml", "text/html;q=0"] {
            let fields: Fields = accept.map { ["Accept": $0] } ?? [:]
            let other = try await service.send(.get, "/files/", fields, token: "anna-0001")
            #expect(try text(other).contains("<h1>/</h1>"), "\(accept ?? "none")")
            #expect(other.fields["Content-Security-Policy"] == plain.fields["Content-Security-Policy"])
        }
    }

    @Test("the path above the own paths shows the files, with links that are right there")
    func home() async throws {
        let service = try Service()
        #expect(try await service.send(.put, "/files/x", token: "anna-0001", content: [1]).status == 201)
        for target in ["/", "/files"] {
            let page = try await service.send(.get, target, Self.html, token: "anna-0001")
            #expect(page.status == 200)
            #expect(try text(page).contains(" data-folder=\"/files/\""))
            #expect(try text(page).contains("<a href=\"./files/x\">x</a>"), "\(target)")
            let head = try await service.send(.head, target, Self.html, token: "anna-0001")
            #expect(head.status == 200 && head.content.bytes == [])
        }
        let without = try Service(page: false)
        for (method, fields, target) in [
            (HTTPSemantics.Method.get, [:] as Fields, "/"), (.get, ["Accept": "application/json"], "/"),
            (.post, Self.html, "/"), (.delete, Self.html, "/"), (.options, Self.html, "/"), (.get, Self.html, "/none"),
        ] {
            let response = try await service.send(method, target, fields, token: "anna-0001")
            let plain = try await without.send(method, target, fields, token: "anna-0001")
            #expect(
                response.status == 404 && response.fields.remaining == plain.fields.remaining, "\(method) \(target)")
            #expect(response.content == plain.content)
        }
    }

    @Test("a handler of all paths takes the place of the page above the own paths")
    func routes() async throws {
        let handler = ReplyHandler { _ in .text("of the application") }
        let service = try Service(tokens: nil, handlers: [("", handler)])
        #expect(try text(await service.send(.get, "/", Self.html)) == "of the application")
        #expect(try text(await service.send(.get, "/files/", Self.html)).contains("data-folder=\"/files/\""))
        // A handler does not get the own paths in any spelling.
        #expect(try await service.send(.get, "/onward/session", Self.html).status == 405)
        #expect(try await service.send(.get, "/onward/%73ession", Self.html).status == 404)
        #expect(try await service.send(.get, "/onward/x", Self.html).status == 404)
    }

    @Test("a server without files has no page")
    func noFiles() async throws {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        var configuration = ServerConfiguration()
        configuration.hasPage = true
        let server = InProcessServer(
            configuration: configuration, store: store, handlers: [("media", FilesHandler(store: store))])
        #expect(try await server.send(.get, "/", fields: Self.html).status == 404)
        #expect(try text(await server.send(.get, "/media/", fields: Self.html)).contains("<h1>/</h1>"))
    }

    @Test(
        "a client that may not read a folder or file, or requests one that does not exist, gets the page without rows",
        arguments: [
            ("/files/", nil, 401, "missing-token"), ("/", nil, 401, "missing-token"),
            ("/files/none/", nil, 401, "missing-token"), ("/files/", "nobody-0001", 401, "invalid-token"),
            ("/files/", "maker-0001", 403, "insufficient-scope"), ("/files/", "box-00001", 403, "insufficient-scope"),
            ("/files/box/", "box-00001", 404, "no-such-file"), ("/files/none/", "anna-0001", 404, "no-such-file"),
            ("/files/x", nil, 401, "missing-token"), ("/files/x", "box-00001", 403, "insufficient-scope"),
            ("/files/none", "anna-0001", 404, "no-such-file"),
        ] as [(String, String?, Int, String)])
    func refusals(target: String, token: String?, status: Int, code: String) async throws {
        let service = try Service()
        #expect(try await service.send(.put, "/files/x", token: "anna-0001", content: [1]).status == 201)
        let page = try await service.send(.get, target, Self.html, token: token)
        #expect(page.status.rawValue == status)
        #expect(try text(page).contains("<body data-status=\"\(status)\" data-code=\"\(code)\">"))
        #expect(try text(page).contains("<tbody></tbody>"))
        let folder = target.hasSuffix("none/") || target.hasSuffix("box/") ? target : "/files/"
        #expect(try text(page).contains(" data-folder=\"\(folder)\""))
        let plain = try await service.send(.get, target, token: token)
        #expect(plain.status == (target == "/" && status == 404 ? 404 : page.status))
        for name in ["WWW-Authenticate", "Cache-Control"] { #expect(page.fields[name] == plain.fields[name]) }
        #expect(plain.fields["Content-Type"] == "application/problem+json")
    }

    @Test("files, redirects, other resources, and refusals that credentials do not change have no page")
    func noPage() async throws {
        let service = try Service()
        for (target, token) in [
            ("/uploads/", nil), ("/metrics", nil), ("/onward/usage", nil), ("/none", "anna-0001"),
            ("/files/..", "anna-0001"),
        ] as [(String, String?)] {
            let response = try await service.send(.get, target, Self.html, token: token)
            #expect(response.fields["Content-Type"] == "application/problem+json", "\(target)")
        }
        for name in ["/files/x", "/files/d/y"] {
            #expect(try await service.send(.put, name, token: "anna-0001", content: [1]).status == 201)
        }
        #expect(try await service.send(.get, "/files/x", Self.html, token: "anna-0001").content.bytes == [1])
        #expect(try await service.send(.get, "/files/d", Self.html, token: "anna-0001").status == 308)
        #expect(
            try await service.send(.get, "/files/x", Self.html + ["If-Match": "\"y\""], token: "anna-0001").fields[
                "Content-Type"] == "application/problem+json")
        let local = try Service(tokens: nil)
        let foreign = try await local.send(.get, "/", Self.html + ["Host": "other.example"])
        #expect(foreign.status == 403 && foreign.fields["Content-Type"] == "application/problem+json")
        #expect(try await local.send(.get, "/files/", Self.html).status == 200)
    }

    // MARK: The session

    @Test(
        "a session reports what its token allows",
        arguments: [
            ("anna-0001", #"{"principal":"anna","scopes":["read","create","write"],"prefixes":[],"expires":900}"#),
            ("root-0001", #"{"principal":"root","scopes":["read","admin"],"prefixes":[],"expires":900}"#),
            (
                "box-00001",
                #"{"principal":"box","scopes":["read","create"],"prefixes":["/files/box/","/files/b%20c"],"expires":900}"#
            ),
            ("maker-0001", #"{"principal":"maker","scopes":["create"],"prefixes":[],"expires":900}"#),
        ])
    func access(token: String, expected: String) async throws {
        let response = try await Service().begin(token: token)
        #expect(response.status == 200 && response.fields["Cache-Control"] == "no-store")
        #expect(try text(response) == expected)
        #expect(
            response.fields["Set-Cookie"]?.contains("; Path=/files/; Max-Age=900; HttpOnly; SameSite=Strict") == true)
    }

    @Test("a client without a token gets its rights and no cookie, if it has any")
    func anonymous() async throws {
        let refused = try await Service().begin(token: nil)
        #expect(refused.status == 401 && refused.fields["WWW-Authenticate"] != nil)
        #expect(try await Service().begin(token: "nobody-0001").status == 401)
        let readers = try await Service(publicRead: true).begin(token: nil)
        #expect(try text(readers) == #"{"principal":"anonymous","scopes":["read"],"prefixes":[],"expires":null}"#)
        let local = try await Service(tokens: nil).begin(token: nil)
        #expect(
            try text(local)
                == #"{"principal":"anonymous","scopes":["read","create","write"],"prefixes":[],"expires":null}"#)
        for response in [refused, readers, local] { #expect(!response.fields.contains("Set-Cookie")) }
    }

    @Test(
        "only the server's own pages begin and end a session",
        arguments: [
            [:], ["Origin": "https://app.example"], ["Origin": "null"], ["Sec-Fetch-Site": "cross-site"],
            ["Sec-Fetch-Site": "same-site", "Origin": "http://localhost"], ["Sec-Fetch-Site": "none"],
        ] as [Fields])
    func foreign(fields: Fields) async throws {
        let service = try Service()
        for method in [HTTPSemantics.Method.post, .delete] {
            let response = try await service.send(method, "/onward/session", fields, token: "anna-0001")
            #expect(response.status == 403 && !response.fields.contains("Set-Cookie"), "\(method)")
        }
        #expect(try await service.begin(token: "anna-0001", ["Origin": "http://localhost"]).status == 200)
    }

    @Test("other methods of a session are refused, also preflights")
    func sessionMethods() async throws {
        let service = try Service()
        for method in [HTTPSemantics.Method.get, .head, .put, .patch, .options] {
            let response = try await service.send(
                method, "/onward/session",
                ["Origin": "https://app.example", "Access-Control-Request-Method": "POST"], token: "anna-0001")
            #expect(response.status == 405 && response.fields["Allow"] == "POST, DELETE")
            #expect(!response.fields.contains("Access-Control-Allow-Methods"))
        }
    }

    @Test("the end of a session removes the cookie, without a token")
    func end() async throws {
        let response = try await Service().send(.delete, "/onward/session", ["Sec-Fetch-Site": "same-origin"])
        #expect(response.status == 204)
        #expect(
            response.fields["Set-Cookie"] == "onward-session=; Path=/files/; Max-Age=0; HttpOnly; SameSite=Strict")
    }

    @Test(
        "the cookie is for https only if the client uses it, and its path is that of the client",
        arguments: [
            (nil, [:], "Path=/files/; Max-Age=900; HttpOnly; SameSite=Strict"),
            (nil, ["X-Forwarded-Proto": "https"], "Path=/files/; Max-Age=900; HttpOnly; SameSite=Strict; Secure"),
            (nil, ["X-Forwarded-Prefix": "/in"], "Path=/in/files/; Max-Age=900; HttpOnly; SameSite=Strict"),
            (
                "https://files.example/in/box", [:],
                "Path=/in/box/files/; Max-Age=900; HttpOnly; SameSite=Strict; Secure"
            ),
            ("http://files.example", [:], "Path=/files/; Max-Age=900; HttpOnly; SameSite=Strict"),
        ] as [(String?, Fields, String)])
    func path(url: String?, fields: Fields, attributes: String) async throws {
        let service = try Service { $0.publicBase = url.flatMap(PublicBase.init(url:)) }
        let response = try await service.begin(token: "anna-0001", fields + ["Sec-Fetch-Site": "same-origin"])
        let field = try #require(response.fields["Set-Cookie"])
        #expect(field.drop { $0 != ";" } == "; " + attributes)
        let page = try text(await service.send(.get, "/files/none/", Self.html + fields, token: "anna-0001"))
        let base = try #require(attributes.firstMatch(of: /Path=(.*)files\/;/)?.1)
        #expect(page.contains("data-base=\"\(base)\" data-folder=\"\(base)files/none/\""))
    }

    @Test("pages of the public URL begin a session, not those of the server's own address")
    func publicOrigin() async throws {
        let service = try Service { $0.publicBase = PublicBase(url: "https://files.example/in") }
        #expect(try await service.begin(token: "anna-0001", ["Origin": "https://files.example"]).status == 200)
        #expect(try await service.begin(token: "anna-0001", ["Origin": "http://localhost"]).status == 403)
        let proxied = try Service()
        let forwarded: Fields = ["X-Forwarded-Host": "files.example:8443", "X-Forwarded-Proto": "https"]
        #expect(
            try await proxied.begin(token: "anna-0001", forwarded + ["Origin": "https://files.example:8443"]).status
                == 200)
        #expect(
            try await proxied.begin(token: "anna-0001", forwarded + ["Origin": "http://files.example:8443"]).status
                == 403)
    }

    @Test("the cookie reads files and folders, and is accepted for nothing else")
    func cookie() async throws {
        let service = try Service(handlers: [("other", ReplyHandler { request in .text("\(request.principal)") })])
        #expect(try await service.send(.put, "/files/x", token: "anna-0001", content: [1, 2]).status == 201)
        let cookie: Fields = ["Cookie": try await service.cookie(token: "anna-0001")]
        for target in ["/files/x", "/files/", "/files"] {
            #expect(try await service.send(.get, target, cookie).status == 200, "\(target)")
            #expect(try await service.send(.head, target, cookie).status == 200, "\(target)")
            #expect(try await service.send(.get, target, cookie + ["Origin": "https://app.example"]).status == 401)
            #expect(try await service.send(.get, target, cookie + ["Sec-Fetch-Site": "same-site"]).status == 401)
        }
        #expect(try await service.send(.get, "/files/x", cookie + ["Range": "bytes=1-"]).content.bytes == [2])
        for method in [HTTPSemantics.Method.options, .put, .post, .patch, .delete] {
            for target in ["/files/x", "/files/", "/files/y"] {
                #expect(
                    try await service.send(method, target, cookie, content: []).status == 401, "\(method) \(target)")
            }
        }
        let draft: Fields = ["Upload-Draft-Interop-Version": "8", "Upload-Complete": "?0"]
        let upload = try await service.send(.put, "/files/z", draft, token: "anna-0001", content: [1])
        let location = try #require(upload.fields["Location"])
        for target in [location, "/metrics", "/onward/usage", "/other", "/", "/uploads/x"] {
            for method in [HTTPSemantics.Method.get, .head] {
                #expect(try await service.send(method, target, cookie).status == 401, "\(method) \(target)")
            }
        }
        #expect(try await service.begin(token: nil, cookie + ["Sec-Fetch-Site": "same-origin"]).status == 401)
        #expect(try await service.send(.get, "/files/x", token: "anna-0001").status == 200)
    }

    @Test("a token has precedence over the cookie, and the cookie has the prefix of its token and ends with it")
    func cookieAccess() async throws {
        let service = try Service()
        for name in ["/files/x", "/files/box/x"] {
            #expect(try await service.send(.put, name, token: "anna-0001", content: [1]).status == 201)
        }
        let cookie: Fields = ["Cookie": "a=1; " + (try await service.cookie(token: "box-00001"))]
        #expect(try await service.send(.get, "/files/box/x", cookie).status == 200)
        #expect(try await service.send(.get, "/files/x", cookie).status == 403)
        #expect(try await service.send(.get, "/files/x", cookie, token: "anna-0001").status == 200)
        #expect(try await service.send(.get, "/files/box/x", cookie, token: "nobody-0001").status == 401)
        #expect(try await service.send(.get, "/files/box/x", cookie, token: "maker-0001").status == 403)
        service.authorizer?.replace(with: try TokenList(parsing: "box token-of-another-0001"))
        #expect(try await service.send(.get, "/files/box/x", cookie).status == 401)
    }

    @Test("no handler gets the cookie, but each gets the other cookies")
    func handlers() async throws {
        let handler = ReplyHandler { request in .text(request.fields.values("Cookie").joined(separator: "|")) }
        let service = try Service(publicRead: true, handlers: [("app", handler)])
        let cookie: Fields = ["Cookie": "a=1; " + (try await service.cookie(token: "anna-0001")) + "; b=2"]
        #expect(try text(await service.send(.get, "/app", cookie)) == "a=1; b=2")
    }

    // MARK: Usage

    @Test("everyone can read the own usage, and a token with admin that of all")
    func usage() async throws {
        let service = try Service()
        #expect(try await service.send(.put, "/files/x", token: "anna-0001", content: [1, 2]).status == 201)
        let draft: Fields = ["Upload-Draft-Interop-Version": "8", "Upload-Complete": "?0", "Upload-Length": "10"]
        #expect(try await service.send(.put, "/files/box/z", draft, token: "box-00001", content: [1]).status == 201)
        let own = try await service.send(.get, "/onward/usage", token: "anna-0001")
        #expect(own.status == 200 && own.fields["Cache-Control"] == "no-store")
        #expect(try text(own) == #"{"principal":"anna","bytes":2,"uploads":0,"quota":1000,"maxUploads":7}"#)
        #expect(
            try text(await service.send(.get, "/onward/usage", token: "box-00001"))
                == #"{"principal":"box","bytes":10,"uploads":1,"quota":1000,"maxUploads":7}"#)
        #expect(
            try text(await service.send(.get, "/onward/usage?x=all", token: "root-0001"))
                == #"{"principal":"root","bytes":0,"uploads":0,"quota":1000,"maxUploads":7}"#)
        for query in ["?all", "?x&all=1"] {
            let all = try await service.send(.get, "/onward/usage" + query, token: "root-0001")
            let principals =
                #"{"principals":[{"principal":"anna","bytes":2,"uploads":0},{"principal":"box","bytes":10,"uploads":1}],"#
            #expect(try text(all).hasPrefix(principals + #""quota":1000,"maxUploads":7,"free":"#))
            for token in ["anna-0001", "box-00001", "maker-0001"] {
                let refused = try await service.send(.get, "/onward/usage" + query, token: token)
                #expect(refused.status == 403 && refused.fields["WWW-Authenticate"]?.contains("scope") == true)
            }
        }
        #expect(try await service.send(.get, "/onward/usage").status == 401)
        #expect(try await service.send(.post, "/onward/usage", token: "anna-0001").status == 405)
        let local = try Service(tokens: nil)
        #expect(try text(await local.send(.get, "/onward/usage")).hasPrefix(#"{"principal":"anonymous","bytes":0,"#))
        #expect(try await local.send(.get, "/onward/usage?all").status == 403)
    }
}

/// A handler that responds to `GET` and `HEAD` with a function.
private struct ReplyHandler: TargetHandler {
    let reply: @Sendable (TargetRequest) -> Response

    func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .head] }
    func accept(_ proposal: UploadProposal) -> Acceptance { .refuse(Response(status: 400)) }
    func complete(_ upload: ReceivedUpload) async throws -> Response { Response(status: 500) }
    func respond(to request: TargetRequest) -> Response { reply(request) }
}

extension Fields {
    /// The fields without the date.
    fileprivate var remaining: Fields {
        var fields = self
        fields.remove("Date")
        return fields
    }
}
