import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// A hostile client before an application that authorizes, and a hostile application (RFC 9112).
@Suite("Gateway: messages of an application that authorizes", .blocking)
struct GatewayAuthorizationMessageTests {
    @Test("fields that belong to a connection or forge the application's own fields are not shown")
    func shown() throws {
        let application = try Application()
        try application.withServer { server in
            let response = try server.exchange(
                Request(
                    "POST", "/app/x",
                    [
                        ("Connection", "X-Hop, TE, Onward-Method"), ("X-Hop", "forged"), ("TE", "trailers"),
                        ("Trailer", "X-Forged"), ("Onward-Method", "forged"), ("onward-target", "forged"),
                        ("Onward_Principal", "forged"), ("Onward-Host", "forged"), ("Keep-Alive", "forged"),
                        ("Proxy-Authorization", "forged"), ("X-Kept", "1"),
                    ], .chunks([[1], [2]])
                ).by("anna"))
            #expect(response.status == 201, "\(response)")
            for request in application.origin.requests {
                #expect(!request.text.contains("forged") && request.fields["X-Kept"] == "1", "\(request.text)")
            }
            let shown = try #require(application.asked.first)
            #expect(shown.method == "GET" && shown.isComplete && shown.contentCount == 0)
            #expect(shown.fields.values("Onward-Method") == ["POST"])
            #expect(shown.fields.values("Onward-Target") == ["/app/x"])
            // A credential that belongs to the connection is neither shown nor forwarded.
            let hidden = try server.exchange(Request("GET", "/app/x", [("Connection", "Authorization")]).by("anna"))
            #expect(hidden.status == 401 && application.served.count == 1)
            #expect(application.origin.malformed == [])
        }
    }

    @Test(
        "credentials in ISO-8859-1 are shown byte for byte, and a refusal with such bytes reaches the client unchanged")
    func bytes() throws {
        let credentials: [UInt8] =
            Array("Authorization: User \u{e9}".utf8) + [0xE9, 0xFF, 0x20, 0xF4, 0x8F, 0xBE, 0x80]
        let challenge: [UInt8] = Array("WWW-Authenticate: User realm=\"".utf8) + [0xE9, 0xE8] + Array("\"".utf8)
        let application = try Application { _, connection in
            let head = Array("HTTP/1.1 401 Who\r\nX-Empty:\r\nContent-Length: 0\r\n".utf8)
            try connection.send(head + challenge + Array("\r\n\r\n".utf8))
        }
        try application.withServer { server in
            let connection = try server.connect()
            try connection.send(
                Array("GET /app/x HTTP/1.1\r\nHost: localhost\r\n".utf8) + credentials + Array("\r\n\r\n".utf8))
            let response = try connection.readResponse(to: "GET")
            #expect(response.status == 401 && response.fields.values("X-Empty") == [""], "\(response)")
            #expect(connection.received.contains(challenge))
            #expect(try #require(application.asked.first).head.contains(credentials))
        }
    }

    @Test(
        "a response that is not valid HTTP/1.1 allows nothing",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\nOnward-Principal: anna\r\n\r\n",
            "HTTP/1.1 200 OK\r\nOnward-Principal: anna\r\n b\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nOnward-Principal: anna\r\nOnward-Principal: berta\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nOnward-Principal: \u{e9}\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nOnward-Principal:\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nOnward-Principal: anna\rX: y\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 40_000) + "\r\nOnward-Principal: anna\r\n\r\n",
            "HTTP/1.1 101 Switching\r\nOnward-Principal: anna\r\n\r\n",
            String(repeating: "HTTP/1.1 103 Hints\r\nOnward-Principal: anna\r\n\r\n", count: 200)
                + "HTTP/1.1 200 OK\r\nOnward-Principal: anna\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 302 Go\r\nLocation: /auth2\r\nOnward-Principal: anna\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nOnward-Principal: anna\r\n\r\n0\r\n\r\n",
        ])
    func invalid(response: String) throws {
        let application = try Application { _, connection in
            try connection.send(response)
            connection.endOutput()
        }
        try application.withServer { server in
            let refused = try server.exchange(Request("GET", "/app/x").by("anna"))
            #expect(refused.status == 503, "\(refused)")
            #expect(["authorization-unavailable", "authorization-invalid"].contains(refused.problem?.code ?? ""))
            #expect(application.served.isEmpty)
        }
    }
}
