import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// Decisions about uploads, and about the server's own paths.
@Suite("Gateway: authorization of uploads and files", .blocking)
struct GatewayAuthorizationUploadTests {
    /// One request of each kind, with the path of the upload `location`.
    private static func requests(of location: String, at offset: Int) -> [Request] {
        [
            .retrieval(.v8, location), .retrieval(.v8, location, "GET"), Request("OPTIONS", location),
            .append(.v8, location, at: offset, complete: false, .bytes([])), .cancellation(.v8, location),
        ]
    }

    // MARK: Uploads

    @Test("every request for an upload is decided again", arguments: ["/files/x", "/app/x"])
    func everyRequest(target: String) throws {
        let application = try Application()
        try application.withServer { server in
            let location = try server.begin(by: "anna", target, Payload.bytes(100))
            for request in Self.requests(of: location, at: 100) {
                let before = application.asked.count
                application.decide(Application.always("403 No", [], "revoked"))
                let refused = try server.exchange(request.by("anna"))
                #expect(refused.status == 403, "\(request.method)")
                #expect(refused.text == (request.method == "HEAD" ? "" : "revoked"), "\(request.method)")
                application.decide(Application.byUser())
                #expect((200..<300).contains(try server.exchange(request.by("anna")).status), "\(request.method)")
                #expect(application.asked.count == before + 2)
                for shown in application.asked.suffix(2) {
                    #expect(shown.fields["Onward-Method"] == request.method)
                    #expect(shown.fields["Onward-Target"] == location)
                    #expect(shown.fields["Authorization"] == Request.credentials(of: "anna"))
                }
            }
            #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).status == 404)
        }
    }

    @Test("for another principal an upload does not exist", arguments: ["/files/x", "/app/x"])
    func owner(target: String) throws {
        let application = try Application()
        try application.withServer { server in
            let location = try server.begin(by: "anna", target, Payload.bytes(100))
            let unknown = "/uploads/" + String(repeating: "0", count: location.split(separator: "/").last?.count ?? 0)
            func text(_ response: Response) -> String {
                response.fields.filter { $0.name != "Date" }.map { "\($0.name): \($0.value)\n" }.joined()
                    + response.text
            }
            for (request, absent) in zip(Self.requests(of: location, at: 100), Self.requests(of: unknown, at: 100)) {
                let response = try server.exchange(request.by("berta"))
                #expect(response.status == 404, "\(request.method)")
                #expect(text(response) == text(try server.exchange(absent.by("berta"))), "\(request.method)")
            }
            let final = Request.append(.v8, location, at: 100, complete: true, .bytes([1]))
            #expect(try server.exchange(final.by("berta")).status == 404)
            #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).offset == 100)
            #expect(try server.exchange(final.by("anna")).status == 201)
            #expect(try server.exchange(final.by("berta")).status == 404)
        }
    }

    @Test("an upload of an open route belongs to all clients, including those that the application accepts")
    func openRoute() throws {
        let application = try Application()
        let open = "/open=\(application.origin.url),access=open"
        try application.withServer("--route", open) { server in
            let location = try server.begin(by: "anna", "/open/x", Payload.bytes(100))
            #expect(application.asked.isEmpty)
            let closed = try server.begin(by: "anna", "/app/x", Payload.bytes(100))
            for user in ["anna", "berta"] {
                #expect(try server.exchange(Request.retrieval(.v8, location).by(user)).offset == 100)
            }
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 100)
            #expect(try server.exchange(Request.retrieval(.v8, closed).by("berta")).status == 404)
            // Without credentials the application refuses, whether the upload exists or not.
            for location in [closed, "/uploads/" + String(repeating: "A", count: closed.utf8.count - 9)] {
                let refused = try server.exchange(.retrieval(.v8, location))
                #expect(refused.status == 401, "\(refused)")
                #expect(refused.value("WWW-Authenticate") == "User realm=\"app\"", "\(refused)")
            }
            let last = Request.append(.v8, location, at: 100, complete: true, .bytes([1])).by("anna")
            #expect(try server.exchange(last).status == 201)
            #expect(application.served.last?.fields.contains("Onward-Principal") == false)
            #expect(application.served.last?.fields["Authorization"] == Request.credentials(of: "anna"))
        }
    }

    @Test("the application decides again at the end of a request that lasts longer than 10 seconds")
    func slow() throws {
        let application = try Application()
        try application.withServer { server in
            let names = ["stays", "revoked", "changed", "dead"]
            let connections = try names.map { name in
                let connection = try server.connect()
                try connection.send(
                    Request.creation(.v8, "PUT", "/files/\(name)", complete: true, .declared(1000)).by(name))
                return connection
            }
            let locations = try connections.map { try #require(try $0.requireInterim().location) }
            let deadline = Deadline(in: .milliseconds(10_100))
            var sent = 0
            while !deadline.isOver {
                for connection in connections { try connection.send([7]) }
                sent += 1
                Deadline.pause(.milliseconds(100))
            }
            #expect(application.asked.count == 4)
            application.decide { request, connection in
                switch request.fields["Onward-Target"] {
                case "/files/revoked": try connection.respond("403 No", [("X-Reason", "revoked")], "not any more")
                case "/files/changed": try connection.respond("200 OK", [("Onward-Principal", "mallory")])
                case "/files/dead": connection.close()
                default: try Application.byUser()(request, connection)
                }
            }
            for connection in connections { try connection.send([UInt8](repeating: 7, count: 1000 - sent)) }
            let responses = try connections.map { try $0.readResponse() }
            #expect(responses.map(\.status) == [201, 403, 403, 503], "\(responses)")
            // A request whose connection was closed is sent again.
            let again = application.asked.dropFirst(4).compactMap { $0.fields["Onward-Target"] }
            #expect(again.filter { $0 != "/files/dead" }.count == 3 && Set(again) == Set(names.map { "/files/" + $0 }))
            #expect(
                responses[1].text == "not any more" && responses[1].value("X-Reason") == "revoked", "\(responses[1])")
            #expect(responses[2].problem?.code == "not-allowed")
            #expect(responses[3].problem?.code == "authorization-unavailable")
            #expect(responses[3].value("Retry-After") == "5")
            #expect(server.publishedNames() == ["stays"])
            application.decide(Application.byUser())
            for (name, (location, response)) in zip(names, zip(locations, responses)).dropFirst() {
                #expect(response.offset == 1000 && response.complete == false, "\(response)")
                let state = try server.exchange(Request.retrieval(.v8, location).by(name))
                #expect(state.offset == 1000 && state.complete == false, "\(state)")
                let again = Request.append(.v8, location, at: 1000, complete: true, .bytes([])).by(name)
                #expect(try server.exchange(again).status == 201)
            }
            #expect(Set(server.publishedNames()) == Set(names))
        }
    }

    // MARK: The paths of the server

    @Test("the application decides about files, too")
    func files() throws {
        let application = try Application()
        try application.withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([1, 2]))).status == 401)
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([1, 2])).by("anna")).status == 201)
            let location = try server.begin(by: "anna", "/files/d/y", [3])
            #expect(
                try server.exchange(Request.append(.v8, location, at: 1, complete: true, .bytes([4])).by("anna")).status
                    == 201)
            for path in ["/files/", "/files/d/", "/files/d/x", "/files/missing"] {
                #expect(try server.exchange(.get(path)).text == "who?", "\(path)")
            }
            let file = try server.exchange(Request.get("/files/d/x").by("berta"))
            #expect(file.status == 200 && file.content == [1, 2])
            #expect(file.value("Cache-Control")?.contains("private") == true, "\(file)")
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([5])).by("berta")).status == 204)
            #expect(try server.exchange(Request("DELETE", "/files/d/x")).status == 401)
            #expect(server.published("d/x") == [5])
            #expect(try server.exchange(Request("DELETE", "/files/d/x").by("anna")).status == 204)
            #expect(server.published("d/y") == [3, 4] && server.published("d/x") == nil)
            #expect(application.asked.compactMap { $0.fields["Onward-Target"] }.contains("/files/d/x"))
            #expect(application.served.isEmpty)
        }
    }

    @Test("metrics need a token, and health checks do not, even if the application is dead")
    func metricsAndHealth() throws {
        let application = try Application()
        let fixture = try TokenFixture("ops token-of-ops-0123456789", application.options)
        let server = fixture.server
        #expect(try server.exchange(.get("/metrics")).text == "who?")
        let refused = try server.exchange(Request.get("/metrics").by("anna"))
        #expect(refused.status == 403 && refused.problem?.code == "insufficient-scope", "\(refused)")
        #expect(application.asked.count == 2)
        application.origin.stop()
        expectUndecided(try server.exchange(.get("/metrics")), "authorization-unavailable")
        #expect(try server.exchange(Request.get("/metrics").with(token: "token-of-ops-0123456789")).status == 200)
        for path in ["/healthz", "/readyz"] { #expect(try server.exchange(.get(path)).status == 200) }
        #expect(application.asked.count == 2)
    }

    @Test("preflights get their response without credentials", arguments: ["401 Who", "403 No", "404 None"])
    func preflights(status: String) throws {
        let page = "https://app.example"
        let application = try Application(Application.always(status, [("X-Reason", "none")]))
        try application.withServer("--cors-origin", page) { server in
            for target in ["/files/x", "/app/x", "/uploads/x"] {
                let fields = [("Origin", page), ("Access-Control-Request-Method", "PATCH")]
                let response = try server.exchange(Request("OPTIONS", target, fields))
                #expect(response.status == 204, "\(response)")
                #expect(response.value("Access-Control-Allow-Origin") == page)
                #expect(response.list("Access-Control-Allow-Methods").contains("patch"))
                #expect(response.list("Access-Control-Allow-Headers").contains("authorization"))
                #expect(!response.fields.contains("Upload-Limit") && !response.fields.contains("X-Reason"))
                // The request after it gets the refusal, which the page can read.
                let refused = try server.exchange(Request("PATCH", target, [("Origin", page)], .bytes([])))
                #expect(String(refused.status) == status.prefix(3) && refused.value("X-Reason") == "none")
                #expect(refused.value("Access-Control-Allow-Origin") == page)
                // OPTIONS of other clients is no preflight.
                #expect(String(try server.exchange(Request("OPTIONS", target)).status) == status.prefix(3))
            }
            #expect(application.served.isEmpty)
        }
    }
}
