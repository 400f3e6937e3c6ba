import ConformanceKit
import Testing

/// `serve --explain`, `Onward-Explain`, `--interim` and `Onward-Interim`.
@Suite("Explanations of a missing 104", .blocking)
struct ExplainTests {
    private func explained(_ request: Request) -> Request { request.with("Onward-Explain", "?1") }

    private func sentence(_ response: Response) -> String? {
        response.value("Onward-Explain").map {
            $0.hasPrefix("\"") && $0.hasSuffix("\"") ? String($0.dropFirst().dropLast()) : $0
        }
    }

    @Test("Each reason is in the response field and in the log")
    func reasons() throws {
        try withServer("--explain", "--min-size", "4") { server in
            let entire = Request.creation(.v8, complete: true, .bytes([1, 2, 3, 4]))
            var old = entire
            old.version = "HTTP/1.0"
            let location = try server.begin(.v4, "/files/part", [1])
            var cases: [(Request, String)] = [
                (entire, "104 sent: the upload's URL"),
                (old, "no 104: the request uses HTTP/1.0"),
                (entire.with("Onward-Interim", "off"), "no 104: the request has Onward-Interim: off; not resumable"),
                (
                    .creation(nil, complete: true, .bytes([1, 2, 3, 4])),
                    "no 104: the request has no Upload-Draft-Interop-Version"
                ),
                (
                    Request("PUT", "/files/f", [("Upload-Draft-Interop-Version", "9"), ("Upload-Complete", "?0")]),
                    "no 104: Upload-Draft-Interop-Version is not a number from 3 to 8; resumable"
                ),
                (Request("PUT", "/files/f", [], .bytes([1])), "no 104: the request has no Upload-Complete"),
                (
                    Request("PUT", "/files/f", [("Upload-Complete", "true")], .bytes([1])),
                    "no 104: Upload-Complete (interop version 3: Upload-Incomplete) is not ?0 or ?1 on one line"
                ),
                (
                    .creation(.v8, complete: true, .bytes([1])),
                    "no 104: the upload is smaller than the minimum of resumable uploads"
                ),
                (
                    .append(.v8, location, at: 9, complete: false, .bytes([1])),
                    "no 104: the request was refused (mismatching-upload-offset)"
                ),
                (
                    .append(.v4, location, at: 1, complete: false, .bytes([2])),
                    "no 104: interop version 4 has no 104 for offsets"
                ),
            ]
            let digest = [UInt8](arrayLiteral: 3).digestField()
            cases.append(
                (
                    Request.append(.v8, location, at: 2, complete: false, .bytes([3])).with("Content-Digest", digest),
                    "no 104: nothing is acknowledged before Content-Digest has been verified"
                ))
            for (request, text) in cases {
                let response = try server.exchange(explained(request))
                let reported = try #require(sentence(response), "\(response)")
                #expect(reported.hasPrefix(text), "\(response)")
                try server.awaitLog(": " + reported + "\n")
                #expect(response.interim.contains { $0.status == 104 } == reported.hasPrefix("104 sent"), "\(response)")
            }
            let secret = try #require(location.split(separator: "/").last)
            #expect(!server.log.contains(secret))
            // The response has the field only if the request has it, and only if there is something to explain.
            #expect(try server.exchange(entire).value("Onward-Explain") == nil)
            #expect(try server.exchange(explained(.get("/files/f"))).value("Onward-Explain") == nil)
            #expect(try server.exchange(explained(.retrieval(.v8, location))).value("Onward-Explain") == nil)
            #expect(try server.exchange(entire.with("Onward-Explain", "yes")).value("Onward-Explain") == nil)
        }
    }

    @Test("Without --explain the log has only the reason's code")
    func quiet() throws {
        try withServer { server in
            _ = try server.exchange(explained(Request("PUT", "/files/f", [], .bytes([1]))))
            let line = try server.process.awaitErrorOutput { log in
                log.split(separator: "\n").first { $0.contains(" PUT /files/f 201 ") }.map(String.init)
            }
            #expect(line.contains(" interim_omitted=no-completeness "))
            #expect(!server.log.contains("explain PUT"))
        }
    }

    @Test("A page of another origin may request the explanation, and may read it")
    func crossOrigin() throws {
        try withServer("--cors-origin", "https://app.example") { server in
            let preflight = try server.exchange(
                Request(
                    "OPTIONS", "/files/f",
                    [("Origin", "https://app.example"), ("Access-Control-Request-Method", "PUT")]))
            let allowed = preflight.list("Access-Control-Allow-Headers")
            #expect(allowed.contains("onward-explain") && allowed.contains("onward-interim"))
            let answer = try server.exchange(
                explained(Request("PUT", "/files/f", [("Origin", "https://app.example")], .bytes([1]))))
            #expect(answer.list("Access-Control-Expose-Headers").contains("onward-explain"))
            #expect(sentence(answer)?.hasPrefix("no 104: ") == true)
        }
    }

    @Test("The explanation of an early refusal has the code of its problem document")
    func refused() throws {
        let fixture = try TokenFixture("a token-all-0123456789abcdef")
        let answer = try fixture.server.exchange(explained(.creation(.v8, complete: true, .bytes([1]))))
        #expect(answer.status == 401)
        #expect(sentence(answer) == "no 104: the request was refused (missing-token)")
    }

    @Test("--interim off: no client gets 104; interrupted appends can still be resumed")
    func turnedOff() throws {
        try withServer("--interim", "off") { server in
            let entire = try server.exchange(explained(.creation(.v8, complete: true, .bytes([1, 2]))))
            #expect(entire.status == 201)
            #expect(entire.interim.isEmpty)
            #expect(sentence(entire)?.hasPrefix("no 104: the server runs with --interim off") == true)
            let location = try server.begin(.v8, "/files/g", [1])
            let last = try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2])))
            #expect(last.status == 201)
            #expect(last.interim.isEmpty)
        }
        let process = try ServerProcess.run(["--interim", "perhaps"])
        #expect(try process.awaitEnding() == .exited(64))
    }
}
