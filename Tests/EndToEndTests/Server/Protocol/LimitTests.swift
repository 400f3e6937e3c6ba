import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

/// Limits (draft section 4.1.4): each option of the server with exact limits.
@Suite("Limits", .serialized, .blocking)
struct LimitTests {
    @Test(
        "LIM-01 LIM-02 INT-05: if an upload is too large, a 413 with the limits is sent before any content is read",
        arguments: [true, false])
    func tooLarge(byContentLength: Bool) throws {
        try withServer("--max-size", "100") { server in
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
        try withServer("--max-size", "100") { server in
            let target = method == "PUT" ? "/files/f" : "/files/"
            let content: Request.Content =
                chunked ? .chunks([Payload.bytes(60), Payload.bytes(60)]) : .bytes(Payload.bytes(101))
            let response = try server.exchange(Request(method, target, [], content))
            #expect(response.status == 413)
            #expect(server.publishedNames().isEmpty)
        }
    }

    @Test("LIM-04: --max-append-size also applies to chunked content")
    func maxAppendChunked() throws {
        try withServer("--max-append-size", "10") { server in
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

    @Test("LIM-04: chunked content beyond --max-append-size is stored up to the limit", arguments: [10, 300_000])
    func maxAppendPrefix(limit: Int) throws {
        try withServer("--max-append-size", "\(limit)") { server in
            let content = Payload.bytes(2 * limit)
            let location = try server.begin(.v8, "/files/f")
            let connection = try server.connect()
            try connection.send(
                Request.append(.v8, location, at: 0, complete: false, .chunks([content + Payload.bytes(1)])))
            let response = try connection.readResponse(to: "PATCH")
            #expect(response.status == 413)
            #expect(response.offset == Int64(limit))
            #expect(try server.retrieve(location).offset == Int64(limit))
            let last = try server.exchange(
                .append(.v8, location, at: limit, complete: true, .bytes(Array(content[limit...]))))
            #expect(last.status == 201)
            expectSame(server.fileContent("f") ?? [], content)
        }
    }

    @Test("LIM-06: the bytes of an interrupted request are kept, even if they are fewer than --min-append-size")
    func minAppendInterrupted() throws {
        try withServer("--min-append-size", "10") { server in
            let location = try server.begin()
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 0, complete: false, .declared(20)))
            try connection.send([1, 2, 3])
            connection.close()
            try server.awaitInterruption("PATCH")
            #expect(try server.retrieve(location).offset == 3)
        }
    }

    @Test("LIM-09: an upload below --min-size is handled as a plain upload, without 104")
    func minSize() throws {
        try withServer("--min-size", "1000") { server in
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

    @Test("LIM-10 LIM-11: an upload keeps the limits that applied at its creation")
    func stable() throws {
        try withServer("--max-size", "1000", "--max-append-size", "500", "--min-append-size", "1") { server in
            let location = try server.begin(.v8, "/files/f", [1])
            try server.crash()
            try server.restart([
                "--max-size", "10", "--max-append-size", "5", "--min-append-size", "4", "--min-size", "3",
            ])
            let limits = try #require(try server.retrieve(location).limits)
            #expect(limits["max-size"] == 1000)
            #expect(limits["max-append-size"] == 500)
            #expect(limits["min-append-size"] == 1)
            #expect(limits["min-size", default: 0] == 0)
            let response = try server.exchange(
                .append(.v8, location, at: 1, complete: true, .bytes(Payload.bytes(100))))
            #expect(response.status == 201)
        }
    }

    @Test(
        "LIM-13 LIM-14 LIM-18 LIM-20: the response to OPTIONS has the limits and the supported features",
        arguments: ["/files/f", "/files/", "/files/a/b/"])
    func discovery(target: String) throws {
        try withServer { server in
            let response = try server.exchange(Request("OPTIONS", target))
            #expect(response.isSuccessful)
            #expect(response.limits?.isEmpty == false)
            #expect(response.list("Accept-Patch").contains("application/partial-upload"))
            #expect(response.fields.contains("Allow"))
        }
    }

    @Test("LIM-14 LIM-15 LIM-16 H11-26: OPTIONS * and every resource announce the same limits")
    func sameEverywhere() throws {
        try withServer("--max-size", "1000", "--min-size", "2", "--max-append-size", "500", "--min-append-size", "3") {
            server in
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
        try withServer { server in
            let response = try server.exchange(Request("OPTIONS", target))
            #expect(!response.fields.contains("Upload-Limit"))
        }
    }
}
