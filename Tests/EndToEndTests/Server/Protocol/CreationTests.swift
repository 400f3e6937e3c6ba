import ConformanceKit
import Testing

/// Creations (draft section 4.2): what the server does with names, methods and preconditions of its files, which the draft
/// leaves to the target.
@Suite("Creation", .serialized, .blocking)
struct CreationTests {
    @Test(
        "CRE-08 CRE-19 CRE-20: a method that the target does not support is refused",
        arguments: ["PATCH", "POST"])
    func unknownMethod(method: String) throws {
        try withServer { server in
            let response = try server.exchange(.creation(.v8, method, complete: false, .bytes([1, 2, 3])))
            #expect(response.status == 405)
            #expect(response.list("Allow").contains("put"))
            #expect(response.interim.allSatisfy { $0.status != 104 })
        }
    }

    @Test(
        "CRE-15 CRE-16 CRE-18 H11-13: an interrupted creation keeps its bytes and its length, and is not complete",
        arguments: [true, false])
    func interrupted(byReset: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(100_000)
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(100_000)))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(content[..<40_000])
            try connection.awaitAcknowledgment()
            byReset ? connection.reset() : connection.close()
            try server.awaitInterruption("PUT")
            let state = try server.retrieve(location)
            #expect(state.offset == 40_000)
            #expect(state.complete == false)
            #expect(state.length == 100_000)
            #expect(server.publishedNames().isEmpty)
            let completion = try server.exchange(
                .append(.v8, location, at: 40_000, complete: true, .bytes(Array(content[40_000...]))))
            #expect(completion.status == 201)
            #expect(completion.complete == true)
            #expect(server.published("file.bin")?.sha256 == content.sha256)
        }
    }

    @Test("CRE-19 CMP-02: the method, target and name of the creation apply at the completion, not those of an append")
    func creationBinds() throws {
        try withServer { server in
            let creation = Request.creation(.v8, "POST", "/files/inbox/", complete: false, .bytes([1, 2]))
                .with("Content-Disposition", "inline; filename=\"photo.png\"")
            let location = try #require(try server.exchange(creation).location)
            let append = Request.append(.v8, location, at: 2, complete: true, .bytes([3]))
                .with("Content-Disposition", "inline; filename=\"other.png\"")
            let response = try server.exchange(append)
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(response.location == "/files/inbox/photo.png")
            #expect(server.published("inbox/photo.png") == [1, 2, 3])
            let file = try server.exchange(.get("/files/inbox/photo.png"))
            #expect(file.value("Content-Type") == "image/png")
        }
    }

    @Test("a file appears in one step, when it is complete")
    func noHalfFile() throws {
        try withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes(Array("old".utf8)))).status == 201)
            let location = try server.begin(.v8, "/files/f", Array("new".utf8))
            #expect(server.published("f") == Array("old".utf8))
            let done = try server.exchange(.append(.v8, location, at: 3, complete: true, .bytes(Array("er".utf8))))
            #expect([200, 204].contains(done.status))
            #expect(server.published("f") == Array("newer".utf8))
        }
    }

    @Test("If-None-Match: * and If-Match are honored at creation and at publication")
    func conditions() throws {
        try withServer { server in
            let first = try server.begin(.v8, "/files/f", [1], [("If-None-Match", "*")])
            let second = try server.begin(.v8, "/files/f", [2], [("If-None-Match", "*")])
            let won = try server.exchange(.append(.v8, first, at: 1, complete: true, .bytes([])))
            #expect(won.status == 201)
            let lost = try server.exchange(.append(.v8, second, at: 1, complete: true, .bytes([])))
            #expect(lost.status == 412)
            #expect(lost.complete == true)
            #expect(server.published("f") == [1])
            let late = try server.exchange(
                .creation(.v8, "PUT", "/files/f", complete: false, .bytes([3])).with("If-None-Match", "*"))
            #expect(late.status == 412)
            let tag = try #require(try server.exchange(.get("/files/f")).value("ETag"))
            let replaced = try server.exchange(
                .creation(.v8, "PUT", "/files/f", complete: true, .bytes([4])).with("If-Match", tag))
            #expect(replaced.isSuccessful)
            let stale = try server.exchange(
                .creation(.v8, "PUT", "/files/f", complete: true, .bytes([5])).with("If-Match", tag))
            #expect(stale.status == 412)
            #expect(server.published("f") == [4])
        }
    }
}
