import ConformanceKit
import HTTPTestSupport
import Testing

/// Access with tokens (draft section 13, RFC 6750).
@Suite("Tokens", .timeLimit(.minutes(30)))
struct TokenTests {
    @Test("without a token the server sends no 104, and does not reveal which files exist")
    func needed() throws {
        let server = try InProcessService(.tokens(sampleTokens))
        let anna = "token-of-anna-0001"
        let location = try server.begin(token: anna)
        #expect(try server.exchange(Request("PUT", "/files/there", [], .bytes([1])).with(token: anna)).status == 201)
        let requests: [Request] = [
            .creation(.v8, complete: true, .declared(1_000_000)), .creation(.v3, complete: true, .declared(10)),
            .get("/files/there"), .get("/files/missing"), .get("/files/"), .get("/"), .get("/elsewhere"),
            .get("/files/../../etc/passwd"), .retrieval(.v8, location), .retrieval(.v8, "/uploads/0"),
            .append(.v8, location, at: 10, complete: true, .declared(10)), .cancellation(.v8, location),
            Request("DELETE", "/files/there"), Request("OPTIONS", "*"), Request("OPTIONS", location),
            Request("OPTIONS", "/files/there"), Request("POST", "/files/", [], .declared(7)), .get("/metrics"),
            Request("PUT", "/files/there", [("Expect", "100-continue")], .declared(7)),
        ]
        for request in requests {
            for value in [nil, "Bearer token-of-nobody-1", "Basic eDp5"] {
                var request = request
                if let value { request.fields.append(("Authorization", value)) }
                let response = try server.exchange(request)
                #expect(response.status == 401, "\(request)")
                #expect(response.interim.isEmpty)
                #expect(response.value("WWW-Authenticate")?.hasPrefix("Bearer ") == true)
                #expect(response.fields["Upload-Limit"] == nil && response.fields["Allow"] == nil)
                #expect(response.fields["Upload-Offset"] == nil)
            }
        }
        #expect(try server.retrieve(location).status == 401)
        #expect(try server.exchange(.retrieval(.v8, location).with(token: anna)).offset == 10)
        #expect(server.data.published("there") == [1])
    }

    @Test(
        "health checks and a browser's preflight need no token, and the preflight reveals nothing",
        arguments: [false, true])
    func exceptions(publicRead: Bool) throws {
        var settings = try ServiceSettings.tokens(sampleTokens, publicRead: publicRead)
        settings.server.corsOrigins = ["https://app.example"]
        settings.server.limits.maxSize = 1000
        let server = try InProcessService(settings)
        let location = try server.begin(token: "token-of-anna-0001")
        #expect(try server.exchange(.get("/healthz")).status == 200)
        #expect(try server.exchange(.get("/readyz")).status == 200)
        let preflight = [
            ("Origin", "https://app.example"), ("Access-Control-Request-Method", "PATCH"),
            ("Access-Control-Request-Headers", "authorization"),
        ]
        let answers = try [location, "/uploads/00000000000000000000000000000000", "/files/missing"].map {
            try server.exchange(Request("OPTIONS", $0, preflight))
        }
        for answer in answers {
            #expect(answer.status == 204)
            #expect(answer.value("Access-Control-Allow-Origin") == "https://app.example")
            #expect(answer.list("Access-Control-Allow-Headers").contains("authorization"))
            #expect(answer.fields["Upload-Limit"] == nil)
            #expect(answer.fields.map(\.name) == answers[0].fields.map(\.name))
        }
        // A request that only resembles a preflight needs a token.
        #expect(try server.exchange(Request("OPTIONS", location, [preflight[0]])).status == 401)
        #expect(
            try server.exchange(Request("OPTIONS", location, preflight).with(token: "nobody-knows-it")).status == 401)
    }

    @Test("SEC-02 SEC-16: an upload belongs to its creator; another principal gets the response for an unknown upload")
    func ownership() throws {
        let server = try InProcessService(.tokens(sampleTokens))
        let location = try server.begin(token: "token-of-anna-0001")
        let unknown = "/uploads/" + String(repeating: "ab", count: 16)
        let ben = "token-of-ben-00001"
        func same(_ request: (String) -> Request) throws {
            let foreign = try server.exchange(request(location).with(token: ben))
            let missing = try server.exchange(request(unknown).with(token: ben))
            #expect(foreign.status == 404)
            #expect(foreign.status == missing.status && foreign.content == missing.content)
            let isVariable = { (name: String) in ["date"].contains(name.lowercased()) }
            #expect(
                foreign.fields.filter { !isVariable($0.name) }.map { "\($0)" }
                    == missing.fields.filter { !isVariable($0.name) }.map { "\($0)" })
        }
        for version in Interop.allCases {
            try same { .retrieval(version, $0) }
            try same { .append(version, $0, at: 10, complete: true, .bytes(Payload.bytes(5))) }
            try same { .cancellation(version, $0) }
        }
        try same { Request("OPTIONS", $0) }
        try same { .get($0) }
        let state = try server.exchange(.retrieval(.v8, location).with(token: "token-of-anna-0001"))
        #expect(state.offset == 10)
        #expect(state.complete == false)
        // The responses for invalid and complete uploads reveal nothing more.
        let over = Request.append(.v8, location, at: 10, complete: true, length: 11, .bytes(Payload.bytes(5)))
        _ = try server.exchange(over.with(token: "token-of-anna-0001"))
        try same { .retrieval(.v8, $0) }
    }

    @Test("a token permits only the requests that its scopes and its prefix allow")
    func scopes() throws {
        let server = try InProcessService(.tokens(sampleTokens))
        func status(_ token: String, _ method: String, _ target: String) throws -> Int {
            let content: Request.Content = ["PUT", "POST"].contains(method) ? .bytes([1, 2]) : .none
            let response = try server.exchange(Request(method, target, [], content).with(token: token))
            if response.status == 403 {
                #expect(response.text.contains("insufficient-scope"))
                #expect(response.interim.isEmpty)
            }
            return response.status
        }
        let (maker, reader, box, anna) =
            ("token-of-maker-01", "token-of-reader-1", "token-of-box-0001", "token-of-anna-0001")
        #expect(try status(maker, "PUT", "/files/new") == 201)
        #expect(try status(maker, "PUT", "/files/new") == 403)
        #expect(try status(maker, "DELETE", "/files/new") == 403)
        #expect(try status(maker, "GET", "/files/new") == 403)
        #expect(try status(maker, "POST", "/files/") == 201)
        #expect(try status(reader, "GET", "/files/new") == 200)
        #expect(try status(reader, "GET", "/files/") == 200)
        #expect(try status(reader, "PUT", "/files/other") == 403)
        #expect(try status(box, "PUT", "/files/box/x") == 201)
        #expect(try status(box, "GET", "/files/box/") == 200)
        #expect(try status(box, "POST", "/files/box/") == 201)
        #expect(try status(box, "GET", "/files/new") == 403)
        #expect(try status(box, "GET", "/files/missing") == 403)
        #expect(try status(box, "PUT", "/files/boxes") == 403)
        #expect(try status(anna, "PUT", "/files/new") == 204)
        #expect(try status(anna, "DELETE", "/files/new") == 204)
    }

    @Test("a token that may only create does not replace a file that was created during the upload")
    func createOnly() throws {
        let server = try InProcessService(.tokens(sampleTokens))
        let location = try server.begin(token: "token-of-maker-01")
        let other = Request("PUT", "/files/file.bin", [], .bytes([7])).with(token: "token-of-anna-0001")
        #expect(try server.exchange(other).status == 201)
        let completion = Request.append(.v8, location, at: 10, complete: true, .bytes(Payload.bytes(5)))
        #expect(try server.exchange(completion.with(token: "token-of-maker-01")).status == 403)
        #expect(server.data.published("file.bin") == [7])
    }

    @Test("--public-read allows downloads and listings without a token, and nothing else")
    func publicRead() throws {
        let server = try InProcessService(.tokens(sampleTokens, publicRead: true))
        #expect(
            try server.exchange(Request("PUT", "/files/a", [], .bytes([1])).with(token: "token-of-anna-0001")).status
                == 201)
        #expect(try server.exchange(.get("/files/a")).status == 200)
        #expect(try server.exchange(Request("HEAD", "/files/a")).status == 200)
        #expect(try server.exchange(.get("/files/")).status == 200)
        #expect(try server.exchange(.get("/files/a").with(token: "nobody-knows-this")).status == 401)
        let location = try server.begin(token: "token-of-anna-0001")
        for request in [
            .retrieval(.v8, location), .get(location), Request("OPTIONS", "/files/a"), Request("DELETE", "/files/a"),
            Request("PUT", "/files/b", [], .bytes([1])), .creation(.v8, complete: true, .bytes([1])),
        ] {
            let response = try server.exchange(request)
            #expect(response.status == 401, "\(request)")
            #expect(response.interim.isEmpty)
        }
    }
}
