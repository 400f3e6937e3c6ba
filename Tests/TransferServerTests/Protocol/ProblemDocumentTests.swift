import ConformanceKit
import HTTPTestSupport
import Testing

/// Problem documents (RFC 9457, draft section 7): the codes of this server, and texts that must not reveal internals.
@Suite("Problem documents", .blocking)
struct ProblemDocumentTests {
    @Test(
        "PRB-03 PRB-05 STF-08: every refusal is a problem document with a stable code, and reveals no internals",
        arguments: Transport.allCases)
    func everyRefusal(transport: Transport) throws {
        try withService(
            transport, settings: .with { ($0.server.limits.maxSize, $0.server.limits.maxAppendSize) = (1000, 500) }
        ) { server in
            let location = try server.begin(.v8, "/files/f", [1], length: 100)
            let done = try server.begin(.v8, "/files/done", [1])
            #expect(try server.exchange(.append(.v8, done, at: 1, complete: true, .bytes([]))).status == 201)
            let cases: [(Request, Int, String)] = [
                (.append(.v8, location, at: 5, complete: true, .bytes([1])), 409, "mismatching-upload-offset"),
                (.append(.v8, location, at: 1, complete: true, .bytes([1])), 400, "inconsistent-upload-length"),
                (.append(.v8, location, at: 1, complete: nil, .bytes([1])), 400, "missing-upload-complete"),
                (
                    Request(
                        "PATCH", location, [("Content-Type", "application/partial-upload"), ("Upload-Complete", "?1")],
                        .bytes([1])), 400, "missing-upload-offset"
                ),
                (
                    Request("PATCH", location, [("Upload-Offset", "1"), ("Upload-Complete", "?1")], .bytes([1])), 415,
                    "unsupported-media-type"
                ),
                (.append(.v8, location, at: 1, complete: false, .bytes(Payload.bytes(501))), 400, ""),
                (.append(.v8, done, at: 1, complete: true, .bytes([1])), 400, "completed-upload"),
                (.append(.v8, "/uploads/none", at: 1, complete: true, .bytes([1])), 404, "upload-not-found"),
                (.creation(.v8, complete: true, .bytes(Payload.bytes(1001))), 413, "upload-too-large"),
                (.creation(.v8, complete: false, .bytes(Payload.bytes(501))), 413, "append-too-large"),
                (Request("POST", location, [], .bytes([1])), 405, "method-not-allowed"),
                (.retrieval(.v5, location, "GET").with("Upload-Offset", "1"), 400, "upload-fields-not-allowed"),
                (.get("/files/none"), 404, "no-such-file"), (.get("/nothing"), 404, "not-found"),
                (.get("/files/.."), 400, "path-dot-segment"),
                (Request("PATCH", "/files/x", [], .bytes([1])), 405, "method-not-allowed"),
                (.get("/files/").with("Expect", "x"), 417, "unsupported-expectation"),
                (.get("/files/").with("Host", "evil.example"), 403, "foreign-host"),
            ]
            for (request, status, code) in cases {
                let response = try server.exchange(request)
                #expect(response.status == status, "\(request.method) \(request.target): \(response)")
                let problem = try #require(response.problem, "\(request.method) \(request.target): \(response)")
                #expect(problem.status == response.status)
                #expect(problem.type != nil && problem.title?.isEmpty == false && problem.detail?.isEmpty == false)
                if !code.isEmpty { #expect(problem.code == code) }
                for secret in [server.directory.path, "/tmp", "sqlite", "Sources/", ".swift", "0x"] {
                    #expect(!response.text.contains(secret), "\(response.text)")
                }
            }
        }
    }

    @Test(
        "PRB-06: a refusal of HEAD has the same fields and no content",
        arguments: ["/uploads/none", "/files/none", "/files/..", "/nothing"], Transport.allCases)
    func headRefusals(target: String, transport: Transport) throws {
        try withService(transport) { server in
            let head = try server.exchange(Request("HEAD", target))
            let get = try server.exchange(.get(target))
            #expect(head.status == get.status)
            #expect(head.content.isEmpty)
            #expect(head.value("Content-Type") == get.value("Content-Type"))
            #expect(get.problem != nil)
        }
    }

    @Test(
        "SEC-18: a client's text cannot split a response",
        arguments: ["%0d%0aX-Injected:%201", "%E2%80%A8", "%0A"])
    func noSplitting(text: String) throws {
        try withService { server in
            let request = Request.creation(.v8, "POST", "/files/", complete: true, .bytes([1]))
                .with("Content-Disposition", "inline; filename*=UTF-8''a" + text + "b")
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(!response.fields.contains("X-Injected"))
            let file = try server.exchange(.get(try #require(response.location)))
            #expect(file.content == [1])
            #expect(!file.fields.contains("X-Injected"))
        }
    }
}
