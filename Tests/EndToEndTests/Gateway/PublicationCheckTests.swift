import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A check of files by an HTTP endpoint before they are published.
@Suite("Gateway: check before publication", .blocking)
struct GatewayCheckTests {
    private typealias Fixture = CheckFixture
    private static let content = Fixture.content

    private func complete(_ server: ServerProcess, _ location: String, _ version: Interop? = .v8) throws -> Response {
        try GatewayUploadFixture.complete(server, location, at: Self.content.count, version)
    }

    // MARK: Accepted

    @Test(
        "an accepted file appears after the check, in every version of the draft",
        arguments: GatewayUploadFixture.versions)
    func accepted(version: Interop?) throws {
        let storage = Monitor<PublishedStorage?>(nil)
        let endpoint = try ScriptedServer.origin { request, connection in
            let content = try storage.withLock { $0 }?.content("a b.bin")
            #expect(content == nil, "the file was published before its check")
            try connection.respond("200 OK", [("Set-Cookie", "a=b"), ("Location", "/elsewhere")], "fine")
        }
        try Fixture.withCheck(by: endpoint) { process in
            storage.withLock { $0 = PublishedStorage(of: process) }
            let location = try process.begin(
                version, "/files/a%20b.bin", Array(Self.content[..<60_000]),
                [
                    ("Content-Type", "text/x-test"), ("Cookie", "session=of-the-client"),
                    ("Repr-Digest", Self.content.digestField()), ("Onward-Principal", "mallory"), ("X-Other", "1"),
                ])
            let response = try process.exchange(
                Request.append(version, location, at: 60_000, complete: true, .bytes(Array(Self.content[60_000...])))
                    .with("Authorization", "Basic b2Y6dGhlLWNsaWVudA=="))
            #expect(response.status == 201, "\(response)")
            #expect(response.states(complete: true, in: version), "\(response)")
            #expect(response.value("Location") == "/files/a%20b.bin" && response.value("ETag") != nil, "\(response)")
            #expect(!response.fields.contains("Set-Cookie"), "\(response)")
            #expect(process.published("a b.bin") == Self.content)
            let request = try #require(endpoint.requests.first)
            #expect(request.method == "POST" && request.target == "/check?key=secret")
            #expect(request.isComplete && request.content == Self.content)
            let expected = [
                "Content-Length": "\(Self.content.count)", "Content-Type": "text/x-test", "Onward-Method": "PUT",
                "Onward-Target": "/files/a%20b.bin", "Onward-Digest": Self.content.digestField(),
            ]
            for (name, value) in expected { #expect(request.fields.values(name) == [value], "\(request.text)") }
            #expect(request.fields["Onward-Upload"]?.utf8.count == 32)
            let names = ["host", "user-agent", "onward-upload"] + expected.keys.map { $0.lowercased() }
            #expect(Set(request.fields.map { $0.name.lowercased() }) == Set(names), "\(request.text)")
            // Version 7 does not define the repetition of a completed upload.
            #expect(try complete(process, location, version).status == (version == .v7 ? 400 : 201))
            #expect(endpoint.requests.count == 1 && endpoint.malformed.isEmpty)
        }
    }

    @Test("nothing gets past the check: every kind of request that publishes a file, and small files")
    func noBypass() throws {
        let endpoint = try ScriptedServer.origin(Fixture.accept)
        try Fixture.withCheck(by: endpoint) { server in
            let small = Array("hello".utf8)
            var requests: [(Request, [UInt8], String)] = []
            for (number, content) in [small, [], Self.content].enumerated() {
                requests += [
                    (Request("PUT", "/files/p\(number)", [], .bytes(content)), content, "p\(number)"),
                    (Request("POST", "/files/d/", [Self.name("q\(number)")], .bytes(content)), content, "d/q\(number)"),
                    (
                        .creation(.v8, "PUT", "/files/r\(number)", complete: true, .bytes(content)), content,
                        "r\(number)"
                    ),
                    (
                        .creation(.v3, "PUT", "/files/s\(number)", complete: true, .bytes(content)), content,
                        "s\(number)"
                    ),
                    (
                        .creation(.v6, "POST", "/files/d/", complete: true, .bytes(content))
                            .with("Content-Disposition", Self.name("t\(number)").1), content, "d/t\(number)"
                    ),
                ]
            }
            requests.append((Request("PUT", "/files/u", [], .chunks([small])), small, "u"))
            for (index, (request, content, name)) in requests.enumerated() {
                let response = try server.exchange(request)
                #expect(response.status == 201, "\(name): \(response)")
                #expect(server.published(name) == content, "\(name)")
                #expect(endpoint.requests.count == index + 1, "\(name)")
                #expect(endpoint.requests.last?.content == content && endpoint.requests.last?.isComplete == true)
            }
            // Downloads and deletions are not checked.
            #expect(try server.exchange(.get("/files/u")).text == "hello")
            #expect(try server.exchange(Request("DELETE", "/files/u")).status == 204)
            #expect(endpoint.requests.count == requests.count)
            let metrics = try server.metrics { $0["onward_checks_total{outcome=\"accepted\"}"] >= 16 }
            #expect(metrics.nonzero("onward_checks_total") == ["outcome=\"accepted\"": 16])
            #expect(metrics["onward_check_duration_seconds_count"] == 16)
            try Fixture.expectLog(server, " check=accepted check_ms=")
        }
    }

    private static func name(_ name: String) -> (String, String) {
        ("Content-Disposition", "inline; filename=\"\(name)\"")
    }

    // MARK: Refused

    @Test(
        "a refused file is removed, and its client gets the status and the document, again after a restart",
        arguments: [
            ("422 No", "text/plain; charset=utf-8", "it has a\nvirus", 422, "content-refused", "it has a virus"),
            ("422 No", "text/html", "<b>no</b>", 422, "content-refused", "The check has refused the file."),
            (
                "403 Forbidden", "application/problem+json",
                #"{"type":"https://e.example/v","title":"Virus","status":200,"names":[{"a":1.5}],"code":"virus-found"}"#,
                403,
                "virus-found", #""names":[{"a":1.5}]"#
            ),
            ("415 No", "application/problem+json", #"{"detail":"only images"}"#, 415, "content-refused", "only images"),
            (
                "422 No", "application/problem+json", "[1]", 422, "content-refused",
                "The check has refused the file."
            ),
        ])
    func refused(
        status: String, type: String, content: String, expected: Int, code: String, detail: String
    ) throws {
        let endpoint = try Fixture.responses((status, [("Content-Type", type), ("X-Inside", "1")], content))
        try Fixture.withCheck(by: endpoint) { server in
            let plain = try server.exchange(Request("PUT", "/files/p", [], .bytes(Self.content)))
            #expect(plain.status == expected && plain.problem?.code == code && plain.text.contains(detail), "\(plain)")
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let response = try complete(server, location)
            #expect(!response.fields.contains("X-Inside"))
            try Fixture.expectRefused(response, server, location, status: expected, code: code, detail: detail)
            #expect(endpoint.requests.count == 2, "the refused file was checked again")
            #expect(try server.exchange(.get("/files/file.bin")).status == 404)
        }
    }

    @Test("the event of a refused file is refused, with the status")
    func event() throws {
        let endpoint = try Fixture.responses(("422 No", [], ""))
        let receiver = try ScriptedServer.origin(Fixture.accept)
        try Fixture.withCheck(by: endpoint, options: ["--events", receiver.url + "/events"]) { server in
            #expect(try server.exchange(.creation(complete: true, .bytes([1]))).status == 422)
            let last: [UInt8]? = pollUntil(within: .seconds(30)) {
                let requests = receiver.requests
                return requests.count == 2 && requests[1].isComplete ? requests[1].content : nil
            }
            let text = String(decoding: try #require(last), as: UTF8.self)
            #expect(text.contains(#""type":"onward.upload.refused""#) && text.contains(#""status":422"#), "\(text)")
            #expect(!text.contains(#""file""#))
        }
    }

    @Test("an early refusal, before the endpoint has read the file")
    func early() throws {
        let endpoint = try ScriptedServer.origin { _, connection in
            try connection.send("HTTP/1.1 422 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.endOutput()
        }
        try Fixture.withCheck(by: endpoint) { server in
            let response = try server.exchange(Request("PUT", "/files/p", [], .bytes(Payload.bytes(20_000_000))))
            #expect(response.status == 422, "\(response)")
            Fixture.expectNoFile(server)
        }
    }

    // MARK: No verdict

    @Test(
        "after a response that is no verdict the file waits, and is checked again when the client repeats its request",
        arguments: [
            "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 303 Look\r\nLocation: /check2\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 401 Who\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 429 Slow\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "nonsense\r\n\r\n", "",
        ])
    func noVerdict(bytes: String) throws {
        let count = Counter()
        let endpoint = try ScriptedServer.origin { _, connection in
            if count.next() > 2 { return try connection.respond() }
            try connection.discardContent()
            try connection.send(bytes)
            connection.close()
        }
        try Fixture.withCheck(by: endpoint) { server in
            let plain = try server.exchange(Request("PUT", "/files/p", [], .bytes([1, 2])))
            #expect(plain.status == 503 && plain.value("Retry-After") == "5", "\(plain)")
            #expect(plain.problem?.code == "target-unavailable")
            Fixture.expectNoBytes(server)
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            Fixture.expectUnchecked(try complete(server, location), server)
            try GatewayUploadFixture.expectWaiting(server, location)
            try Fixture.expectLog(server, " warning: ")
            try Fixture.expectLog(server, "\(endpoint.url)/check, which checks files, ")
            #expect(!server.log.contains("key=secret"))
            #expect(try complete(server, location).status == 201)
            #expect(server.published("file.bin") == Self.content)
            let metrics = try server.metrics { $0["onward_checks_total{outcome=\"accepted\"}"] == 1 }
            #expect(metrics["onward_checks_total{outcome=\"failed\"}"] == 2)
        }
    }

    @Test("an endpoint that is down, and one that is unavailable for a time")
    func down() throws {
        let endpoint = try Fixture.responses(("503 Later", [("Retry-After", "77")], ""), ("200 OK", [], ""))
        endpoint.stop()
        try Fixture.withCheck(by: endpoint) { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            Fixture.expectUnchecked(try complete(server, location), server)
            try endpoint.restart()
            Fixture.expectUnchecked(try complete(server, location), server, retryAfter: "77")
            #expect(try complete(server, location).status == 201)
        }
    }

    @Test("the time limit, with a response that never ends and with one that never begins", arguments: [true, false])
    func timeLimit(isEndless: Bool) throws {
        let endpoint = try ScriptedServer.origin { _, connection in
            try connection.discardContent()
            if isEndless { try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") }
            while !connection.awaitClosing(within: .milliseconds(50)) {
                if isEndless { try connection.send("1\r\nx\r\n") }
            }
        }
        try Fixture.withCheck(by: endpoint, ",timeout=1s") { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let begun = ContinuousClock.now
            Fixture.expectUnchecked(try complete(server, location), server)
            #expect(ContinuousClock.now - begun < .seconds(20))
            try Fixture.expectLog(server, "has not responded within 1 s")
            #expect(endpoint.awaitNoConnection())
        }
    }

    @Test("a response that is too large is no verdict, and needs no memory")
    func endless() throws {
        let endpoint = try ScriptedServer.origin { _, connection in
            try connection.discardContent()
            try connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 1 << 20)
            while true { try connection.send(piece) }
        }
        try Fixture.withCheck(by: endpoint) { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            Fixture.expectUnchecked(try complete(server, location), server)
            try Fixture.expectLog(server, "has sent more than 1 MiB")
            #expect(endpoint.awaitNoConnection())
        }
    }

    // MARK: During a check

    @Test("during a check the upload is not complete, and repeated requests wait for the same check")
    func joined() throws {
        let hold = Hold()
        let endpoint = try ScriptedServer.origin { _, connection in
            hold.wait()
            try connection.respond()
        }
        try Fixture.withCheck(by: endpoint) { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            // The first client leaves.
            var gone: RawConnection? = try server.connect()
            try gone?.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(endpoint.awaitRequests(1))
            withExtendedLifetime(gone) {}
            gone = nil
            let connections = try (0..<4).map { _ in try server.connect() }
            for connection in connections {
                try connection.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            }
            try GatewayUploadFixture.expectWaiting(server, location)
            Fixture.expectNoFile(server)
            // Other uploads and downloads are not delayed.
            #expect(try server.exchange(.creation(complete: false, .bytes([1]))).status == 201)
            hold.release()
            for connection in connections {
                var response = try connection.readResponse()
                // The request waits only a few seconds if another server checks the file.
                if server.process.all.count > 1, response.isOfUploadInUse(to: "PATCH") {
                    response = try complete(server, location)
                }
                #expect(response.status == 201 && response.complete == true, "\(response)")
            }
            #expect(endpoint.requests.count == 1)
            #expect(server.published("file.bin") == Self.content)
        }
    }

    @Test("at most max= checks run at the same time; others wait, but not longer than the time limit")
    func concurrency() throws {
        let hold = Hold()
        let endpoint = try ScriptedServer.origin { request, connection in
            try connection.discardContent()
            if request.fields["Onward-Target"] == "/files/first" { hold.wait() }
            try connection.respond()
        }
        try Fixture.withCheck(by: endpoint, ",max=1,timeout=2s") { server in
            let first = try server.connect()
            try first.send(Request("PUT", "/files/first", [], .bytes([1])))
            #expect(endpoint.awaitRequests(1))
            let second = try server.exchange(Request("PUT", "/files/second", [], .bytes([2])))
            // The first check exceeds its limit at about the same time.
            #expect(second.status == 503 || second.status == 201, "\(second)")
            #expect(try first.readResponse().status == 503)
            hold.release()
            #expect(try server.exchange(Request("PUT", "/files/third", [], .bytes([3]))).status == 201)
        }
    }

    @Test("the server is killed, or stops, during a check: the file is checked again", arguments: [true, false])
    func ended(isKilled: Bool) throws {
        let hold = Hold()
        let endpoint = try ScriptedServer.origin { _, connection in
            hold.wait()
            try connection.respond()
        }
        try Fixture.withCheck(by: endpoint, options: ["--drain-timeout", "0s"]) { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let plain = try server.connect()
            try plain.send(Request("PUT", "/files/plain", [], .bytes([1])))
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(endpoint.awaitRequests(2))
            if isKilled {
                try server.crash()
            } else {
                let begun = ContinuousClock.now
                #expect(try server.stop() == .exited(0))
                #expect(ContinuousClock.now - begun < .seconds(5))
                for consequence in ["the upload is kept, and the target is called again", "the client has to send"] {
                    try Fixture.expectLog(server, "the server stops before the target has responded: \(consequence)")
                }
                for text in ["has not responded within", "target failed", "which checks files"] {
                    #expect(!server.log.contains(text), "\(server.log)")
                }
            }
            Fixture.expectNoFile(server)
            hold.release()
            try server.restart()
            try GatewayUploadFixture.expectWaiting(server, location)
            #expect(try complete(server, location).status == 201)
            #expect(server.published("file.bin") == Self.content)
            #expect(server.publishedNames() == ["file.bin"])
            #expect(endpoint.requests.count == 3)
        }
    }

    @Test("a large file reaches the endpoint with little memory")
    func large() throws {
        let endpoint = try ScriptedServer.origin(Fixture.accept)
        try Fixture.withCheck(by: endpoint) { server in
            #expect(try server.exchange(Request("PUT", "/files/small", [], .bytes([1]))).status == 201)
            let size: Int64 = 200_000_000
            let location = try #require(
                try server.exchange(.creation(.v8, complete: false, length: Int(size), .bytes([]))).location)
            let connection = try server.connect()
            try connection.send(.append(.v8, location, at: 0, complete: true, .declared(size)))
            let piece = [UInt8](repeating: 7, count: 4_000_000)
            for _ in 0..<50 { try connection.send(piece) }
            let response = try connection.readResponse(to: "PATCH", within: .seconds(120))
            #expect(response.status == 201, "\(response)")
            #expect(endpoint.requests.last?.contentCount == size)
            let peak = try #require(server.process.peakResidentBytes())
            #expect(peak < 150_000_000, "the server needed \(peak) bytes")
        }
    }
}
