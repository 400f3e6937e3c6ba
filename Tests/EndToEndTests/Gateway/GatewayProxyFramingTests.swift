import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A hostile client before the gateway, and a hostile origin behind it (RFC 9112): no bytes of one message become a part
/// of another.
@Suite("The gateway as a proxy: framing", .serialized, .blocking)
struct GatewayProxyFramingTests {
    // MARK: A hostile client

    /// A request that follows the bytes of a hostile client and must not be served after a refusal.
    private static let smuggled = "GET /app/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private static func head(_ lines: String...) -> String {
        "POST /app/f HTTP/1.1\r\nHost: localhost\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    /// Heads with an end that two recipients could interpret differently.
    private static let refusedHeads: [String] = [
        head("Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n",
        head("Transfer-Encoding: chunked", "Content-Length: 5") + "0\r\n\r\n",
        head("Content-Length: 5", "Content-Length: 6") + "hello", head("Content-Length: 5, 6") + "hello",
        head("Content-Length: +5") + "hello", head("Content-Length: -1"), head("Content-Length: 0x5") + "hello",
        head("Content-Length: 99999999999999999999"), head("Content-Length : 5") + "hello",
        head("Content-Length:\r\n 5") + "hello", head("Transfer-Encoding: identity"),
        head("Transfer-Encoding: xchunked") + "0\r\n\r\n", head("Transfer-Encoding: chunked, identity"),
        head("Transfer-Encoding: chunked, chunked") + "0\r\n\r\n",
        head("Transfer-Encoding: \u{b}chunked") + "0\r\n\r\n",
        head("Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", head("Transfer-Encoding : chunked") + "0\r\n\r\n",
        head("Transfer-Encoding: chunked", "Transfer-Encoding: x") + "0\r\n\r\n",
        head("Transfer-Encoding: \"chunked\"") + "0\r\n\r\n", head("Transfer\0-Encoding: chunked"),
        head("X: a\rContent-Length: 5"), head("X: a\0b"), head("X: a\r\n folded"), head(" X: a"), head("X"),
        head("X: a\r", "Y: b"), head("Host: other"), "GET /app/f\r\n\r\n", "GET /app/f HTTP/1.1\r\n\r\n",
        "GET  /app/f HTTP/1.1\r\nHost: a\r\n\r\n", "GET /app/f HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /app/f\0 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /app/f x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /app/f#x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /app/\u{e4} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /app/f HTTP/2.0\r\nHost: a\r\n\r\n", "\0GET /app/f HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /app/f HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]

    @Test("a head with an ambiguous end is refused, and neither the head nor the bytes after it are sent to the origin")
    func refusedHeads() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            for raw in Self.refusedHeads {
                let connection = try server.connect()
                _ = connection.sendUntilRefused((raw + Self.smuggled).utf8)
                let response = try? connection.readResponse(to: "GET")
                #expect(response.map { (400..<600).contains($0.status) } == true, "\(raw)")
                #expect(response?.value("Connection") == "close", "\(raw)")
            }
            #expect(origin.requests.isEmpty && origin.malformed.isEmpty, "\(origin.requests.map(\.text))")
        }
    }

    @Test("malformed chunks end the request at the origin before its end, and nothing after them is served")
    func malformedChunks() throws {
        let contents = [
            "FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "-1\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
            "5\r\nhelloworld\r\n0\r\n\r\n",
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\0\r\n", "5\r\nhello\r\n0\r\nX: a\rb\r\n\r\n",
            "5\r\nhello\r\n0\r\nX: y\n\r\n", "5;\0\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n",
            "\r\n0\r\n\r\n",
        ]
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            for content in contents {
                let connection = try server.connect()
                _ = connection.sendUntilRefused(
                    (Self.head("Transfer-Encoding: chunked") + content + Self.smuggled).utf8)
                let response = try? connection.readResponse(to: "POST")
                #expect(response?.status == 400, "\(content): \(String(describing: response))")
                #expect((try? connection.awaitClosing()) != nil)
            }
            #expect(origin.awaitNoConnection())
            #expect(origin.count(of: "/app/smuggled") == 0)
            #expect(!origin.requests.contains { $0.isComplete }, "\(origin.requests)")
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("each accepted request is one request at the origin, with its content, even if they arrive together")
    func pipelinedRequests() throws {
        let origin = try ScriptedServer.origin { request, connection in
            let content = try connection.readContent()
            try connection.respond("200 OK", [], "\(request.target) \(content.count)")
        }
        try withGateway(to: origin) { server in
            let inner = Self.smuggled
            let parts = [
                "POST /app/1 HTTP/1.1\r\nHost: a\r\nContent-Length: \(inner.utf8.count)\r\n\r\n" + inner,
                "GET /app/2 HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n",
                "POST /app/3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "\(String(inner.utf8.count, radix: 16));ext=\"GET / HTTP/1.1\"\r\n\(inner)\r\n"
                    + "0;x\r\nContent-Length: 5\r\nX: y\r\n\r\n",
                "GET /app/4 HTTP/1.1\r\nHost: a\r\nContent-Length: \(inner.utf8.count)\r\n\r\n" + inner,
                "DELETE /app/5 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                "GET /app/6 HTTP/1.1\r\nHost: a\r\nX-Long: \(String(repeating: "x", count: 20_000))\r\n\r\n",
            ]
            let paths = ["/app/1", "/app/2", "/app/3", "/app/4", "/app/5", "/app/6"]
            for inPieces in [false, true] {
                let connection = try server.connect()
                let bytes = Array(parts.joined().utf8)
                if inPieces {
                    for start in stride(from: 0, to: bytes.count, by: 7) {
                        try connection.send(bytes[start..<min(start + 7, bytes.count)])
                    }
                } else {
                    try connection.send(bytes)
                }
                for path in paths {
                    let count = ["/app/1", "/app/3", "/app/4"].contains(path) ? inner.utf8.count : 0
                    let response = try connection.readResponse(to: "GET")
                    #expect(response.status == 200 && response.text == "\(path) \(count)", "\(response)")
                }
                #expect(connection.unread.isEmpty)
            }
            #expect(origin.requests.map(\.path) == paths + paths)
            #expect(origin.requests.allSatisfy { $0.isComplete } && origin.malformed.isEmpty)
            for request in origin.requests where ["/app/1", "/app/3", "/app/4"].contains(request.path) {
                #expect(request.content == Array(inner.utf8))
                #expect(!request.fields.contains("X"))
            }
        }
    }

    // MARK: A hostile origin

    private enum Expected {
        /// A problem document with this status and code.
        case problem(Int, String)
        /// The client can see that the response is incomplete.
        case incomplete
        /// A complete response with this content.
        case content(String)
    }

    private struct Case {
        let response: String
        let expected: Expected
        /// Whether the origin closes the connection after the response.
        var closes = true

        init(_ response: String, _ expected: Expected, closes: Bool = true) {
            (self.response, self.expected, self.closes) = (response, expected, closes)
        }

        static func invalid(_ response: String, closes: Bool = true) -> Case {
            Case(response, .problem(502, "origin-response-invalid"), closes: closes)
        }
    }

    private static func reply(_ lines: String..., content: String = "hello") -> String {
        "HTTP/1.1 200 OK\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n" + content
    }

    private static let smuggledResponse = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED"

    private static let cases: [Case] = [
        .invalid(reply("Content-Length: 5", "Transfer-Encoding: chunked", content: "0\r\n\r\n")),
        .invalid(reply("Transfer-Encoding: chunked", "Content-Length: 5", content: "5\r\nhello\r\n0\r\n\r\n")),
        .invalid(reply("Content-Length: 5", "Content-Length: 6")), .invalid(reply("Content-Length: 5, 6")),
        .invalid(reply("Content-Length: -5")), .invalid(reply("Content-Length: +5")),
        .invalid(reply("Content-Length: 5 5")), .invalid(reply("Content-Length: 0x5")),
        .invalid(reply("Content-Length:")), .invalid(reply("Content-Length: 5,")),
        .invalid(reply("Content-Length: 9223372036854775808")),
        .invalid(reply("Content-Length: 18446744073709551621")),
        .invalid(reply("Content-Length : 5")), .invalid(reply("Content-Length\t: 5")),
        .invalid(reply("Content-Length:\r\n 5")), .invalid(reply("Transfer-Encoding: gzip, chunked")),
        .invalid(reply("Transfer-Encoding: gzip")), .invalid(reply("Transfer-Encoding: identity")),
        .invalid(reply("Transfer-Encoding: xchunked")),
        .invalid(reply("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", content: "0\r\n\r\n")),
        .invalid(reply("X: a\rSet-Cookie: evil=1", "Content-Length: 5")),
        .invalid(reply("X: a\0b", "Content-Length: 5")), .invalid(reply("X: a\u{1}b", "Content-Length: 5")),
        .invalid(reply("X: a\r\n b", "Content-Length: 5")), .invalid(reply("X Y: a", "Content-Length: 5")),
        .invalid(reply("X(): a", "Content-Length: 5")), .invalid(reply(": a", "Content-Length: 5")),
        .invalid(reply("nonsense", "Content-Length: 5")), .invalid(reply(" X: a", "Content-Length: 5")),
        .invalid("HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n"),
        .invalid("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        .invalid("HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"), .invalid("HTTP/1.1 099 OK\r\n\r\n"),
        .invalid("HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"), .invalid("HTTP/1.1 abc OK\r\n\r\n"),
        .invalid("HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello"), .invalid("HTTP/1.1\r\n\r\n"),
        .invalid("HTTP/3.7 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .invalid("<html>HTTP/0.9</html>"),
        .invalid("ICY 200 OK\r\n\r\nhello"), .invalid("\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        .invalid("HTTP/1.1 103 X\r\nLink: a\rSet-Cookie: b\r\n\r\n" + reply("Content-Length: 5")),
        .invalid("HTTP/1.1 103 X\r\nLink: a\0b\r\n\r\n" + reply("Content-Length: 5")),
        .invalid("HTTP/1.1 101 X\r\n\r\n" + reply("Content-Length: 5")),
        .invalid(reply("X: " + String(repeating: "a", count: 40_000), "Content-Length: 5")),
        Case(reply("X: " + String(repeating: "a", count: 30_000), "Content-Length: 5"), .content("hello")),
        // The connection ends before the end of a head.
        Case("", .problem(502, "origin-connection-lost")),
        // Incomplete content.
        Case(reply("Content-Length: 6"), .incomplete), Case(reply("Content-Length: 9223372036854775807"), .incomplete),
        Case(reply("Content-Length: 100000"), .incomplete),
        Case(reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\n"), .incomplete),
        Case(reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\n0\r\n"), .incomplete),
        Case(reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\nxyz\r\n\r\n"), .incomplete),
        Case(reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\n-1\r\n\r\n"), .incomplete),
        Case(
            reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\nFFFFFFFFFFFFFFFFF\r\n\r\n"), .incomplete),
        Case(reply("Transfer-Encoding: chunked", content: "5\r\nhelloworld\r\n0\r\n\r\n"), .incomplete),
        // Complete responses of an unusual form.
        Case("HTTP/1.0 200 OK\r\n\r\nhello", .content("hello")), Case(reply(), .content("hello")),
        Case("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", .content("hello"), closes: false),
        Case(reply("Content-Length: 5", "Content-Length: 5"), .content("hello"), closes: false),
        Case(reply("Content-Length: 5, 5"), .content("hello"), closes: false),
        Case("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", .content("hello"), closes: false),
        Case(
            reply("Transfer-Encoding: chunked", content: "5;x=y\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"),
            .content("hello"), closes: false),
        // Bytes after the end.
        Case(reply("Content-Length: 5") + "more", .content("hello"), closes: false),
        Case(reply("Content-Length: 5") + smuggledResponse, .content("hello"), closes: false),
        Case(
            reply("Transfer-Encoding: chunked", content: "5\r\nhello\r\n0\r\n\r\n") + smuggledResponse,
            .content("hello"), closes: false),
        Case("HTTP/1.1 204 No Content\r\n\r\n" + smuggledResponse, .content(""), closes: false),
        Case("HTTP/1.1 204 No Content\r\nContent-Length: 8\r\n\r\nSMUGGLED", .content(""), closes: false),
        Case("HTTP/1.1 304 Not Modified\r\nContent-Length: 8\r\n\r\nSMUGGLED", .content(""), closes: false),
        Case("HTTP/1.1 304 Not Modified\r\n\r\n" + smuggledResponse, .content(""), closes: false),
    ]

    @Test("a client gets the response to its request, an error, or a visibly incomplete response; never other bytes")
    func hostileResponses() throws {
        let cases = Self.cases
        let origin = try ScriptedServer.origin { request, connection in
            if request.path.hasPrefix("/app/case/"), let number = Int(request.path.dropFirst(10)) {
                try connection.send(cases[number].response)
                if cases[number].closes { connection.endOutput() }
            } else {
                try connection.respond("200 OK", [], "victim of \(request.path)")
            }
        }
        try withGateway(to: origin, "timeout=5s") { server in
            for (number, hostile) in cases.enumerated() {
                let name = "\(number): \(hostile.response.prefix(200).debugDescription)"
                let connection = try server.connect()
                try connection.send(Request.get("/app/case/\(number)"))
                let response = try? connection.readResponse(within: .seconds(20))
                switch hostile.expected {
                case .problem(let status, let code):
                    #expect(response?.status == status, "\(name): \(String(describing: response))")
                    #expect(response?.problem?.code == code, "\(name): \(String(describing: response))")
                case .incomplete: #expect(response == nil, "\(name): \(String(describing: response))")
                case .content(let text):
                    #expect(response?.text == text, "\(name): \(String(describing: response))")
                    #expect(response.map { $0.status < 400 } == true)
                }
                let bytes = String(decoding: connection.received, as: UTF8.self)
                #expect(!bytes.contains("SMUGGLED") && !bytes.contains("evil") && !bytes.contains("\0"), "\(name)")
                // Each thread of the transport has connections of its own.
                for victim in 0..<3 {
                    let path = "/app/victim/\(number)/\(victim)"
                    let response = try server.exchange(.get(path))
                    #expect(response.status == 200 && response.text == "victim of \(path)", "\(name): \(response)")
                }
            }
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("HEAD: content that the origin sends nevertheless does not become a part of another response")
    func contentOfHead() throws {
        let origin = try ScriptedServer.origin { request, connection in
            if request.method == "HEAD" {
                try connection.send(Self.reply("Content-Length: \(Self.smuggledResponse.utf8.count)", content: ""))
                try connection.send(Self.smuggledResponse)
            } else {
                try connection.respond("200 OK", [], "victim")
            }
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            for _ in 0..<10 {
                let head = try connection.exchange(Request("HEAD", "/app/h"))
                #expect(head.status == 200 && head.content.isEmpty)
                #expect(try connection.exchange(.get("/app/g")).text == "victim")
            }
            #expect(!String(decoding: connection.received, as: UTF8.self).contains("SMUGGLED"))
        }
    }

    @Test(
        "bytes that arrive on an idle connection never become the response to the next request",
        arguments: [false, true])
    func bytesBetweenResponses(onUnixSocket: Bool) throws {
        let directory = try TemporaryDirectory()
        let signals = Signals()
        let rounds = Counter()
        let origin = try ScriptedServer.origin(unixPath: onUnixSocket ? directory.path + "/app.sock" : nil) {
            request, connection in
            guard request.path == "/app/bait" else { return try connection.respond("200 OK", [], "victim") }
            try connection.respond()
            // The client has the response before more bytes follow.
            _ = signals.wait(for: "answered", count: rounds.next())
            // The gateway may have closed the connection.
            try? connection.send(Self.smuggledResponse)
            signals.send("injected")
        }
        try withGateway(to: origin) { server in
            for round in 1...6 {
                #expect(try server.exchange(.get("/app/bait")).text == "ok")
                signals.send("answered")
                #expect(signals.wait(for: "injected", count: round))
                for method in ["GET", "POST", "GET", "POST"] {
                    let response = try server.exchange(Request(method, "/app/victim"))
                    #expect(response.status == 200 && response.text == "victim", "\(method): \(response)")
                }
            }
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("endless heads and endless interim responses get 502")
    func endlessHeads() throws {
        let endings = Signals()
        let origin = try ScriptedServer.origin { request, connection in
            defer { endings.send("end") }
            var number = 0
            if request.path == "/app/line" { try connection.send("HTTP/1.1 200 OK\r\nX: ") }
            if request.path == "/app/fields" { try connection.send("HTTP/1.1 200 OK\r\n") }
            while true {
                number += 1
                switch request.path {
                case "/app/line": try connection.send(String(repeating: "a", count: 1000))
                case "/app/fields": try connection.send("X-\(number): \(String(repeating: "a", count: 1000))\r\n")
                default: try connection.send("HTTP/1.1 103 Early Hints\r\nX: \(number)\r\n\r\n")
                }
            }
        }
        try withGateway(to: origin) { server in
            for (number, path) in ["/app/line", "/app/fields", "/app/interim"].enumerated() {
                let response = try server.exchange(.get(path))
                #expect(response.status == 502 && response.problem?.code == "origin-response-invalid", "\(path)")
                #expect(endings.wait(for: "end", count: number + 1), "the connection to the origin was closed: \(path)")
            }
            // The same applies to a client that has not sent all of its content and therefore cannot get responses.
            // Until it sends more, the origin has to wait.
            let connection = try server.connect()
            try connection.send(Request("POST", "/app/interim", [], .declared(1 << 20)))
            #expect(origin.awaitRequests(4))
            try connection.send([UInt8](repeating: 0x61, count: 1 << 20))
            #expect(try connection.readResponse().status == 502)
            #expect(endings.wait(for: "end", count: 4))
        }
    }

    @Test("an origin that is down, silent or closes the connection: the code of the problem names the cause")
    func unavailableOrigin() throws {
        let origin = try ScriptedServer.origin { request, connection in
            switch request.path {
            case "/app/reset":
                try connection.discardContent()
                connection.reset()
            case "/app/half":
                try connection.send("HTTP/1.1 200 OK\r\nContent-Le")
                connection.endOutput()
            case "/app/silent":
                _ = connection.awaitClosing(within: .seconds(30))
                connection.close()
            case "/app/stalled":
                try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello")
                _ = connection.awaitClosing(within: .seconds(30))
                connection.close()
            default: try connection.respond()
            }
        }
        try withGateway(to: origin, "timeout=1s") { server in
            for method in ["GET", "POST"] {
                let content: Request.Content = method == "POST" ? .bytes([1]) : .none
                let reset = try server.exchange(Request(method, "/app/reset", [], content))
                #expect(reset.status == 502 && reset.problem?.code == "origin-connection-lost", "\(reset)")
                let half = try server.exchange(Request(method, "/app/half", [], content))
                #expect(half.status == 502, "\(half)")
                let silent = try server.exchange(Request(method, "/app/silent", [], content))
                #expect(silent.status == 504 && silent.problem?.code == "origin-timeout", "\(silent)")
            }
            #expect(origin.count(of: "/app/reset") == 2 && origin.count(of: "/app/silent") == 2)
            let stalled = try server.connect()
            try stalled.send(Request.get("/app/stalled"))
            #expect((try? stalled.readResponse(within: .seconds(30))) == nil)
            #expect(stalled.ending != nil)
            origin.stop()
            let down = try server.exchange(.get("/app/x"))
            #expect(down.status == 502 && down.problem?.code == "origin-unreachable")
            let upload = try server.exchange(Request("POST", "/app/x", [], .bytes(Payload.bytes(1_000_000))))
            #expect(upload.status == 502 && upload.problem?.code == "origin-unreachable")
            try origin.restart()
            #expect(try server.exchange(.get("/app/x")).text == "ok")
        }
    }
}
