import ConformanceKit
import TestSupport
import Testing

/// Tests the URLs that a gateway changes between clients and applications, and the detection of loops.
@Suite("The gateway as a proxy: its position", .blocking)
struct GatewayRoutingTests {
    @Test("with --public-url only the URLs of Onward are changed, and those of the application are not")
    func locations() throws {
        let origin = try ScriptedServer.origin { _, connection in
            let location = [("Location", "/things/1"), ("Content-Location", "/things/2")]
            try connection.discardContent()
            try connection.send("HTTP/1.1 103 Early Hints\r\nLocation: /things/0\r\n\r\n")
            try connection.respond("201 Made", location)
        }
        try withGateway(to: origin, options: ["--public-url", "https://files.example/inbox"]) { server in
            let plain = try server.exchange(Request("POST", "/app/x", [], .bytes([1])))
            #expect(
                plain.value("Location") == "/things/1" && plain.value("Content-Location") == "/things/2", "\(plain)")
            #expect(plain.interim.last?.fields["Location"] == "/things/0", "\(plain)")
            let created = try server.exchange(.creation(.v8, "POST", "/app/x", complete: false, .bytes([1])))
            let location = try #require(created.value("Location"))
            #expect(location.hasPrefix("https://files.example/inbox/uploads/"), "\(created)")
            let path = String(location.dropFirst("https://files.example/inbox".utf8.count))
            for _ in 0..<2 {
                let last = try server.exchange(.append(.v8, path, at: 1, complete: true, .bytes([])))
                #expect(
                    last.value("Location") == "/things/1" && last.value("Content-Location") == "/things/2", "\(last)")
            }
            // A version in which the final response has the URL of the upload, too.
            let older = try server.exchange(.creation(.v6, "POST", "/app/x", complete: true, .bytes([1])))
            #expect(older.value("Location")?.hasPrefix("https://files.example/inbox/uploads/") == true, "\(older)")
            #expect(older.value("Content-Location") == "/things/1", "\(older)")
        }
    }

    @Test("a request that returns to the gateway again and again ends with 508")
    func loop() throws {
        let port = try FixedPort.next()
        let address = "127.0.0.1:\(port)"
        try withServer("--listen", address, "--route", "/=http://\(address),access=open") { server in
            let response = try server.exchange(.get("/x"))
            #expect(response.status == 508 && response.problem?.code == "forwarding-loop", "\(response)")
            let upload = try server.exchange(.creation(.v8, "POST", "/x", complete: true, .bytes([1, 2, 3])))
            #expect(upload.status == 508 && upload.problem?.code == "forwarding-loop", "\(upload)")
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("a chain of gateways, and Via of other servers, are no loop")
    func chain() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { inner in
            try withServer("--route", "/app=http://127.0.0.1:\(inner.port),access=open") { server in
                let via = (0..<20).map { "1.1 proxy\($0)" }.joined(separator: ", ") + ", 1.1 onwards, HTTP/1.1 x-onward"
                let response = try server.exchange(Request("GET", "/app/x", [("Via", via)]))
                #expect(response.status == 200, "\(response)")
                #expect(origin.requests.last?.fields["Via"] == via + ", 1.1 onward, 1.1 onward")
            }
        }
    }

    @Test("Connection cannot remove a field of the server, nor the framing")
    func connectionNamesEverything() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            let names = [
                "Host", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host",
                "Content-Length",
                "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade-Insecure-Requests", "Expect",
                "Content-Type", "Onward-Principal", "Onward-Upload", "close",
            ]
            let fields = [("Connection", names.joined(separator: ", ")), ("Content-Type", "text/x"), ("X-Kept", "1")]
            for content in [Request.Content.bytes([1, 2, 3]), .chunks([[1], [2, 3]])] {
                let response = try server.exchange(Request("POST", "/app/x", fields, content))
                #expect(response.status == 200)
                let request = try #require(origin.requests.last)
                #expect(request.isComplete && request.content == [1, 2, 3])
                for name in names.prefix(6) { #expect(request.fields.values(name).count == 1, "\(name)") }
                #expect(request.fields["X-Kept"] == "1" && !request.fields.contains("Content-Type"))
            }
            let upload = Request.creation(.v8, "POST", "/app/x", complete: true, .bytes([1, 2, 3]))
            var named = upload
            named.fields += fields
            #expect(try server.exchange(named).status == 200)
            let request = try #require(origin.requests.last)
            #expect(request.content == [1, 2, 3] && request.fields.values("Onward-Upload").count == 1)
            #expect(request.fields.values("Host").count == 1 && origin.malformed == [])
        }
    }

    @Test("fields that Connection names are found byte by byte, whatever follows a separator")
    func connectionOptions() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            // A combining mark after a separator forms one character with it.
            for value in ["X-Hop,\u{301}", "\u{301}, X-Hop \u{301}", "X-Hop\t\u{20D0},x", "a ,X-Hop"] {
                let response = try server.exchange(Request("GET", "/app/x", [("Connection", value), ("X-Hop", "1")]))
                #expect(response.status == 200)
                #expect(origin.requests.last?.fields.contains("X-Hop") == false, "\(value)")
            }
        }
    }
}
