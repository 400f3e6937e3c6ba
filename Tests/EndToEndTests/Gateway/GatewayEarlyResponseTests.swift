import ConformanceKit
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// Responses of an origin while the client pauses in the middle of its content.
@Suite("The gateway as a proxy: responses before the end of a request", .blocking)
struct GatewayEarlyResponseTests {
    private static func refuse(_ request: ReceivedRequest, _ connection: Reply) throws {
        try connection.discardContent(atMost: 1000)
        try connection.send("HTTP/1.1 413 Too\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nlarge")
    }

    /// Sends a part of the content, and nothing more.
    private static func begin(_ connection: RawConnection, _ path: String, isChunked: Bool) throws {
        try connection.send(Request("POST", path, [], isChunked ? .openChunks : .declared(100_000)))
        if isChunked { try connection.sendChunk(Payload.bytes(1000)) } else { try connection.send(Payload.bytes(1000)) }
    }

    @Test("a refusal reaches a client that pauses", arguments: [false, true])
    func refusal(isChunked: Bool) throws {
        let origin = try ScriptedServer.origin(Self.refuse)
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try Self.begin(connection, "/app/x", isChunked: isChunked)
            let response = try connection.readResponse(within: .seconds(10))
            #expect(response.status == 413 && response.text == "large" && response.value("X-A") == "1", "\(response)")
            #expect(response.value("Connection") == "close")
        }
    }

    @Test("a refusal reaches a client that pauses, over TLS, too")
    func secure() throws {
        let origin = try ScriptedServer.origin(Self.refuse)
        let certificate = try SelfSignedCertificate()
        try withGateway(to: origin, options: ["--tls-cert", certificate.certificate, "--tls-key", certificate.key]) {
            server in
            let connection = try RawConnection(securePort: server.port)
            try Self.begin(connection, "/app/x", isChunked: false)
            let response = try connection.readResponse(within: .seconds(10))
            #expect(response.status == 413 && response.text == "large", "\(response)")
        }
    }

    @Test("a complete response reaches a client that pauses")
    func success() throws {
        let origin = try ScriptedServer.origin { _, connection in
            try connection.discardContent(atMost: 1000)
            try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try Self.begin(connection, "/app/x", isChunked: false)
            let response = try connection.readResponse(within: .seconds(10))
            #expect(response.status == 200 && response.text == "early", "\(response)")
        }
    }

    @Test(
        "an error response that does not fit into memory is sent after the remaining content, and waiting needs no processor time"
    )
    func large() throws {
        let origin = try ScriptedServer.origin { request, connection in
            guard request.path == "/app/large" else { return try connection.respond() }
            try connection.discardContent(atMost: 1000)
            try connection.send("HTTP/1.1 403 No\r\nContent-Length: \(4 << 20)\r\n\r\n")
            try connection.send([UInt8](repeating: 0x61, count: 4 << 20))
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try Self.begin(connection, "/app/large", isChunked: false)
            #expect(origin.awaitContent(1000, of: "/app/large"))
            let before = try server.processorTime()
            // Nothing happens on this connection while others are served.
            for _ in 0..<20 { #expect(try server.exchange(.get("/app/x")).status == 200) }
            #expect(!connection.hasInput(within: .milliseconds(500)))
            #expect(try server.processorTime() - before < 60, "ticks of 10 ms")
            try connection.send(Payload.bytes(99_000))
            let response = try connection.readResponse()
            #expect(response.status == 403 && response.contentSize == 4 << 20)
        }
    }

    @Test("interim responses reach the client while it still has content to send", arguments: [false, true])
    func interim(isChunked: Bool) throws {
        let origin = try ScriptedServer.origin { _, connection in
            try connection.discardContent(atMost: 1000)
            try connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nX-Empty:\r\n\r\n")
            try connection.send("HTTP/1.1 102 Processing\r\n\r\n")
            try connection.discardContent(atMost: 1000)
            try connection.send("HTTP/1.1 103 Early Hints\r\nLink: </b>; rel=preload\r\n\r\n")
            try connection.respond()
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try Self.begin(connection, "/app/x", isChunked: isChunked)
            #expect(try connection.readInterim(within: .seconds(10))?.fields["Link"] == "</a>; rel=preload")
            #expect(try connection.readInterim(within: .seconds(10))?.status == 102)
            if isChunked {
                try connection.sendChunk(Payload.bytes(1000))
            } else {
                try connection.send(Payload.bytes(1000))
            }
            #expect(try connection.readInterim(within: .seconds(10))?.fields["Link"] == "</b>; rel=preload")
            if isChunked { try connection.sendLastChunk() } else { try connection.send(Payload.bytes(98_000)) }
            let response = try connection.readResponse()
            #expect(response.status == 200 && response.text == "ok", "\(response)")
            #expect(origin.requests.last?.isComplete == true)
        }
    }

    @Test("more interim responses than any origin needs end the request", arguments: [0, 1000])
    func flood(sent: Int) throws {
        let origin = try ScriptedServer.origin { _, connection in
            try connection.discardContent(atMost: 1000)
            for _ in 0..<10_000 { try connection.send("HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n") }
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            if sent == 0 {
                try connection.send(.get("/app/x"))
            } else {
                try Self.begin(connection, "/app/x", isChunked: true)
            }
            let response = try connection.readResponse(within: .seconds(20))
            #expect(response.status == 502 && response.problem?.code == "origin-response-invalid", "\(response)")
            #expect(response.interim.count <= 100)
            #expect(origin.awaitNoConnection())
        }
    }
}
