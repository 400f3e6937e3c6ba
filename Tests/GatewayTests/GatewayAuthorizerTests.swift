import HTTPSemantics
import TransferServer
import Testing

@testable import Gateway

/// Knows the users in `Authorization: User NAME`, who may do everything but read the metrics.
private struct FakeAuthorizer: Authorizer {
    /// The status of refusals of clients that are not known.
    var isUndecided = false

    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        if let name = head.fields["Authorization"], name.hasPrefix("User ") {
            return Identity(principal: String(name.dropFirst(5)), credential: "fake")
        }
        throw isUndecided
            ? .undecided(code: "fake-undecided", detail: "")
            : .unauthenticated(code: "fake-unknown", detail: "", challenge: "User")
    }

    func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? {
        identity.credential == "fake" && operation != .readMetrics
            ? nil : .forbidden(code: "fake-forbidden", detail: "")
    }
}

@Suite("Authorization of routes")
struct GatewayAuthorizerTests {
    private static func route(_ path: String, isOpen: Bool) throws -> Route {
        var route = try Route(path: path, origin: Origin(parsing: "http://127.0.0.1:1"))
        if isOpen { route.access = .open }
        return route
    }

    private static func authorizer(
        open: [String] = [], closed: [String] = [], prefix: String = "", base: any Authorizer = FakeAuthorizer()
    ) throws -> GatewayAuthorizer {
        GatewayAuthorizer(
            routes: try closed.map { try route($0, isOpen: false) } + open.map { try route($0, isOpen: true) },
            ownPrefix: prefix, base: base)
    }

    /// The principal of a request, or the code of its refusal.
    private func principal(_ authorizer: GatewayAuthorizer, _ path: String, user: String? = nil) throws -> String {
        let target = try #require(RequestTarget(parsing: path))
        let fields: Fields = user.map { ["Authorization": "User " + $0] } ?? [:]
        let head = RequestHead(method: .get, target: path, fields: fields)
        do throws(AuthorizationRefusal) { return try authorizer.identify(head, target: target).principal } catch {
            return error.problem.code ?? "?"
        }
    }

    private func isAllowed(
        _ authorizer: GatewayAuthorizer, _ identity: Identity, _ operation: AccessOperation, _ path: String?
    ) throws -> Bool {
        authorizer.refusal(of: identity, operation, at: try path.map { try PathSegments(decoding: $0) }) == nil
    }

    @Test(
        "without open routes everything is left to the base",
        arguments: ["/app", "/app/x", "/files/x", "/uploads/x", "/"])
    func closed(path: String) throws {
        let authorizer = try Self.authorizer(closed: ["/app"])
        #expect(try principal(authorizer, path) == "fake-unknown")
        #expect(try principal(authorizer, path, user: "anna") == "anna")
        #expect(try !isAllowed(authorizer, .anonymous, .read, path))
        #expect(try !isAllowed(authorizer, .anonymous, .read, nil))
    }

    @Test("the most specific route decides, in whatever order the routes are given")
    func nested() throws {
        let open = try Self.authorizer(open: ["/a", "/a/b/c"], closed: ["/a/b", "/d"])
        for path in ["/a", "/a/", "/a/x", "/a/bb", "/a/b/c", "/a/b/c/d", "/%61/x", "/a/x%2Cy"] {
            #expect(try principal(open, path) == "anonymous", "\(path)")
            #expect(try principal(open, path, user: "anna") == "anna", "\(path)")
            for operation in AccessOperation.allCases {
                #expect(try isAllowed(open, .anonymous, operation, path), "\(path)")
            }
        }
        for path in [
            "/a/b", "/a/b/", "/a/b/x", "/a/%62/x", "/a/b/cc", "/d", "/e", "/aa", "/", "/A", "/files/a", "/metrics",
        ] {
            #expect(try principal(open, path) == "fake-unknown", "\(path)")
            #expect(try principal(open, path, user: "anna") == "anna", "\(path)")
            for operation in AccessOperation.allCases {
                #expect(try !isAllowed(open, .anonymous, operation, path), "\(path)")
            }
        }
    }

    @Test(
        "paths that are not valid are never open",
        arguments: ["/a%5Cb", "/a/../b", "/a/%2e%2e/b", "/a/..%2Fb", "/a%00", "/a%", "*"])
    func invalidPaths(path: String) throws {
        #expect(try principal(try Self.authorizer(open: ["/"]), path) == "fake-unknown")
    }

    @Test("an open route for all paths does not open the server's own paths")
    func all() throws {
        let authorizer = try Self.authorizer(open: ["/"])
        for path in ["/", "/x", "/filesx", "/x/files", "/Files"] {
            #expect(try principal(authorizer, path) == "anonymous", "\(path)")
            #expect(try isAllowed(authorizer, .anonymous, .write, path), "\(path)")
        }
        for path in ["/files", "/files/", "/files/x", "/%66iles/x", "/metrics", "/metrics/", "/healthz", "/readyz"] {
            #expect(try principal(authorizer, path) == "fake-unknown", "\(path)")
            #expect(try !isAllowed(authorizer, .anonymous, .read, path), "\(path)")
        }
        #expect(try isAllowed(authorizer, Identity(principal: "anna", credential: "fake"), .write, "/files/x"))
    }

    @Test("a closed route below an open route for all paths")
    func allButOne() throws {
        let authorizer = try Self.authorizer(open: ["/"], closed: ["/admin"])
        #expect(try principal(authorizer, "/x") == "anonymous")
        for path in ["/admin", "/admin/x", "/%61dmin", "/admin/"] {
            #expect(try principal(authorizer, path) == "fake-unknown", "\(path)")
            #expect(try !isAllowed(authorizer, .anonymous, .read, path), "\(path)")
        }
    }

    @Test("with a prefix of the own paths, the application has their names")
    func prefix() throws {
        let authorizer = try Self.authorizer(open: ["/"], prefix: "/.onward")
        for path in ["/files/x", "/uploads/x", "/metrics", "/healthz", "/.onward", "/.onward/x", "/.onward/x/files"] {
            #expect(try principal(authorizer, path) == "anonymous", "\(path)")
            #expect(try isAllowed(authorizer, .anonymous, .write, path), "\(path)")
        }
        for path in ["/.onward/files/x", "/%2Eonward/files", "/.onward/metrics", "/.onward/healthz"] {
            #expect(try principal(authorizer, path) == "fake-unknown", "\(path)")
            #expect(try !isAllowed(authorizer, .anonymous, .read, path), "\(path)")
        }
        #expect(try principal(authorizer, "/.onward/uploads/x") == "fake-unknown")
        #expect(try !isAllowed(authorizer, .anonymous, .create, "/.onward/uploads/x"))
    }

    @Test("a client without credentials may use uploads with a target below an open route, and no others")
    func uploads() throws {
        let authorizer = try Self.authorizer(open: ["/open"], closed: ["/closed"])
        #expect(try principal(authorizer, "/uploads/x") == "fake-unknown")
        #expect(try principal(authorizer, "/uploads/x", user: "anna") == "anna")
        for (path, user, principal) in [
            ("/open/x", nil, "anonymous"), ("/open/x", "anna", "anna"), ("/closed/x", nil, nil), ("/files/x", nil, nil),
            ("/closed/x", "anna", nil), ("/uploads/x", nil, nil),
        ] as [(String, String?, String?)] {
            let fields: Fields = user.map { ["Authorization": "User " + $0] } ?? [:]
            let head = RequestHead(method: .patch, target: "/uploads/x", fields: fields)
            let target = try #require(RequestTarget(parsing: "/uploads/x"))
            let identity = authorizer.identify(head, target: target, uploadTo: try PathSegments(decoding: path))
            #expect(identity?.principal == principal, "\(path)")
        }
        // The server checks first without a path, and then with the target of the upload.
        #expect(try isAllowed(authorizer, .anonymous, .create, nil))
        #expect(try isAllowed(authorizer, .anonymous, .create, "/open/x"))
        for path in ["/closed/x", "/files/x", "/uploads/x"] {
            #expect(try !isAllowed(authorizer, .anonymous, .create, path), "\(path)")
        }
        let anna = Identity(principal: "anna", credential: "fake")
        for path in [nil, "/open/x", "/closed/x", "/files/x"] {
            #expect(try isAllowed(authorizer, anna, .create, path))
        }
        #expect(try !isAllowed(authorizer, anna, .readMetrics, "/metrics/"))
        let stranger = Identity(principal: "mallory", credential: "other")
        #expect(try !isAllowed(authorizer, stranger, .create, nil))
    }

    @Test("a request for an upload is refused while the base cannot decide")
    func undecided() throws {
        let authorizer = try Self.authorizer(open: ["/open"], base: FakeAuthorizer(isUndecided: true))
        #expect(try principal(authorizer, "/uploads/x") == "fake-undecided")
        #expect(try principal(authorizer, "/files/x") == "fake-undecided")
        #expect(try principal(authorizer, "/open/x") == "anonymous")
    }

    @Test("a path that an application may read as that of a closed route or of the server is not open")
    func pathsWithTwoReadings() throws {
        let routes = try [Self.route("/", isOpen: true), Self.route("/admin", isOpen: false)]
        let authorizer = GatewayAuthorizer(routes: routes, base: RoutesOnlyAuthorizer(isAnonymousAllowed: false))
        for path in ["/x//y", "/x%2Fy", "//x"] { #expect(try principal(authorizer, path) == "anonymous", "\(path)") }
        for path in ["//admin", "/admin//x", "/%2Fadmin", "//files/x", "/x/..%2Fadmin", "/files%2Fx", "//metrics"] {
            #expect(try principal(authorizer, path) == "routes-only", "\(path)")
        }
    }

    @Test("a server without tokens serves its open routes only")
    func routesOnly() throws {
        let authorizer = try Self.authorizer(open: ["/open"], base: RoutesOnlyAuthorizer(isAnonymousAllowed: false))
        #expect(try principal(authorizer, "/open") == "anonymous")
        #expect(try principal(authorizer, "/uploads/x") == "anonymous")
        for path in ["/files/x", "/other", "/metrics", "/"] {
            #expect(try principal(authorizer, path) == "routes-only")
        }
        let all = try Self.authorizer(open: ["/open"], base: RoutesOnlyAuthorizer(isAnonymousAllowed: true))
        for path in ["/files/x", "/other", "/metrics", "/"] { #expect(try principal(all, path) == "anonymous") }
        #expect(try isAllowed(all, .anonymous, .write, "/files/x"))
    }

    @Test("open routes need no response of the application that authorizes, and tokens are still recognized there")
    func application() throws {
        // Nothing listens there.
        let application = try ApplicationAuthorizer(url: "http://127.0.0.1:1/auth", timeout: .seconds(1))
        let authorizer = try Self.authorizer(open: ["/open"], closed: ["/closed"], base: application)
        #expect(try principal(authorizer, "/open/x", user: "anna") == "anonymous")
        for path in ["/closed/x", "/uploads/x", "/files/x", "/"] {
            #expect(try principal(authorizer, path, user: "anna") == "authorization-unavailable")
        }
        let both = try ApplicationAuthorizer(
            url: "http://127.0.0.1:1/auth", timeout: .seconds(1), tokens: FakeAuthorizer())
        let withTokens = try Self.authorizer(open: ["/open"], closed: ["/closed"], base: both)
        for path in ["/open/x", "/closed/x", "/uploads/x", "/files/x"] {
            #expect(try principal(withTokens, path, user: "anna") == "anna")
        }
        #expect(try principal(withTokens, "/closed/x") == "authorization-unavailable")
    }
}

@Suite("Own paths")
struct OwnPathsTests {
    @Test("the own paths, and everything below them")
    func contains() {
        for (prefix, before) in [("", []), ("/.onward", [".onward"]), ("/a/b", ["a", "b"])] as [(String, [String])] {
            let own = OwnPaths(prefix)
            for name in ["files", "uploads", "healthz", "readyz", "metrics", "onward"] {
                for below in [[], ["x"], ["x", "y"]] as [[String]] {
                    #expect(own.path(of: before + [name] + below) == prefix + "/" + name)
                    #expect(own.contains(before + [name] + below))
                    #expect(own.isUpload(before + [name] + below) == (name == "uploads"))
                }
            }
            for other in [[], ["x"], ["Files"], ["filesx"], ["x", "files"], ["_", "uploads", "x"]] as [[String]] {
                #expect(own.path(of: before + other) == nil && !own.contains(before + other))
                #expect(!own.isUpload(before + other))
            }
        }
        #expect(OwnPaths("/.onward").path(of: ["files"]) == nil)
        #expect(OwnPaths("/.onward").path(of: [".onward"]) == nil)
    }
}
