import ConformanceKit
import HTTPTestSupport
import ResumableUpload
import Testing

/// Limits (draft section 4.1.4): each option of the server with exact limits.
@Suite("Limits", .blocking)
struct LimitTests {
    @Test(
        "LIM-01 LIM-02 INT-05: if an upload is too large, a 413 with the limits is sent before any content is read",
        arguments: [true, false])
    func tooLarge(byContentLength: Bool) throws {
        try withSocket(settings: .with { $0.server.limits.maxSize = 100 }) { server in
            let connection = try server.connect()
            let request =
                byContentLength
                ? Request.creation(.v8, complete: true, .declared(101))
                : Request.creation(.v8, complete: false, length: 101, .declared(50))
            try connection.send(request.with("Expect", "100-continue"))
            let response = try connection.readResponse()
            #expect(response.status == 413)
            #expect(response.limits?["max-size"] == 100)
            #expect(response.complete == false)
            #expect(response.interim.isEmpty)
            let exact = try server.exchange(.creation(.v8, complete: true, .bytes(Payload.bytes(100))))
            #expect(exact.status == 201)
        }
    }

    @Test("LIM-01: --max-size applies to plain uploads, too", arguments: ["PUT", "POST"], [true, false])
    func plainTooLarge(method: String, chunked: Bool) throws {
        try withService(settings: .with { $0.server.limits.maxSize = 100 }) { server in
            let target = method == "PUT" ? "/files/f" : "/files/"
            let content: Request.Content =
                chunked ? .chunks([Payload.bytes(60), Payload.bytes(60)]) : .bytes(Payload.bytes(101))
            let response = try server.exchange(Request(method, target, [], content))
            #expect(response.status == 413)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("LIM-04: chunked content beyond --max-append-size is stored up to the limit", arguments: [10, 300_000])
    func maxAppendPrefix(limit: Int) throws {
        try withService(settings: .with { $0.server.limits.maxAppendSize = Int64(limit) }) { server in
            let content = Payload.bytes(2 * limit)
            let location = try server.begin(.v8, "/files/f")
            let response = try server.exchange(
                .append(.v8, location, at: 0, complete: false, .chunks([content + Payload.bytes(1)])))
            #expect(response.status == 413)
            #expect(response.offset == Int64(limit))
            #expect(try server.retrieve(location).offset == Int64(limit))
            let last = try server.exchange(
                .append(.v8, location, at: limit, complete: true, .bytes(Array(content[limit...]))))
            #expect(last.status == 201)
            #expect(areEqual(server.data.published("f") ?? [], content))
        }
    }

    @Test("LIM-09: an upload below --min-size is handled as a plain upload, without 104")
    func minSize() throws {
        try withService(settings: .with { $0.server.limits.minSize = 1000 }) { server in
            let small = try server.exchange(
                .creation(.v8, "PUT", "/files/a", complete: true, .bytes(Payload.bytes(10))))
            #expect(small.status == 201)
            #expect(small.complete == true)
            #expect(small.interim.isEmpty)
            let large = try server.exchange(
                .creation(.v8, "PUT", "/files/b", complete: true, .bytes(Payload.bytes(1000))))
            #expect(large.interim.first?.limits?["min-size"] == 1000)
        }
    }

    @Test(
        "LIM-13 LIM-14 LIM-18 LIM-20: the response to OPTIONS has the limits and the supported features",
        arguments: ["/files/f", "/files/", "/files/a/b/"])
    func discovery(target: String) throws {
        try withService { server in
            let response = try server.exchange(Request("OPTIONS", target))
            #expect(response.isSuccessful)
            #expect(response.limits?.isEmpty == false)
            #expect(response.list("Accept-Patch").contains("application/partial-upload"))
            #expect(response.fields.contains("Allow"))
        }
    }

    @Test("LIM-14 LIM-15 LIM-16 H11-26: OPTIONS * and every resource announce the same limits")
    func sameEverywhere() throws {
        let limits = UploadLimits(maxSize: 1000, minSize: 2, maxAppendSize: 500, minAppendSize: 3, maxAge: 604_800)
        try withService(settings: .with { $0.server.limits = limits }) { server in
            let expected: [String: Int64] = [
                "max-size": 1000, "min-size": 2, "max-append-size": 500, "min-append-size": 3,
            ]
            let location = try server.begin(.v8, "/files/f", Payload.bytes(3))
            for target in ["*", "/files/f", "/files/", location] {
                let response = try server.exchange(Request("OPTIONS", target, Request.versionField(.v8)))
                #expect(response.isSuccessful)
                #expect(response.limits?.filter { $0.key != "max-age" } == expected, "\(target)")
            }
            #expect(try server.retrieve(location).limits?.filter { $0.key != "max-age" } == expected)
        }
    }

    @Test(
        "LIM-17: a resource that accepts no uploads announces no limits",
        arguments: ["/healthz", "/readyz", "/nothing"])
    func unsupported(target: String) throws {
        try withService { server in
            let response = try server.exchange(Request("OPTIONS", target))
            #expect(!response.fields.contains("Upload-Limit"))
        }
    }

    @Test("LIM-04: --max-append-size also applies to chunked content")
    func maxAppendChunked() throws {
        try withSocket(settings: .with { $0.server.limits.maxAppendSize = 10 }) { server in
            let location = try server.begin()
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 0, complete: false, .openChunks))
            try connection.sendChunk(Payload.bytes(5))
            try connection.awaitAcknowledgment()
            try connection.sendChunk(Payload.bytes(20))
            let response = try connection.readResponse(to: "PATCH")
            #expect(response.status == 413)
            let offset = try #require(try server.retrieve(location).offset)
            #expect(offset == 10)
            #expect(response.offset == offset, "the refusal reports the offset from which the client can continue")
        }
    }
}
