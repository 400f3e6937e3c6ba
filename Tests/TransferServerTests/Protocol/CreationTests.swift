import ConformanceKit
import HTTPTestSupport
import Testing

/// Tests creations (draft section 4.2), with the names, methods and preconditions that the draft leaves to the target.
@Suite("Creation", .blocking)
struct CreationTests {
    @Test(
        "CRE-08 CRE-19 CRE-20: a method that the target does not support is refused",
        arguments: ["PATCH", "POST"])
    func unknownMethod(method: String) throws {
        try withService { server in
            let response = try server.exchange(.creation(.v8, method, complete: false, .bytes([1, 2, 3])))
            #expect(response.status == 405)
            #expect(response.list("Allow").contains("put"))
            #expect(response.interim.allSatisfy { $0.status != 104 })
        }
    }

    @Test(
        "CRE-19 CMP-02: the method, target and name of the creation apply at the completion, not those of an append",
        arguments: Transport.allCases)
    func creationBinds(transport: Transport) throws {
        try withService(transport) { server in
            let creation = Request.creation(.v8, "POST", "/files/inbox/", complete: false, .bytes([1, 2]))
                .with("Content-Disposition", "inline; filename=\"photo.png\"")
            let location = try #require(try server.exchange(creation).location)
            let append = Request.append(.v8, location, at: 2, complete: true, .bytes([3]))
                .with("Content-Disposition", "inline; filename=\"other.png\"")
            let response = try server.exchange(append)
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(response.location == "/files/inbox/photo.png")
            #expect(server.data.published("inbox/photo.png") == [1, 2, 3])
            let file = try server.exchange(.get("/files/inbox/photo.png"))
            #expect(file.value("Content-Type") == "image/png")
        }
    }

    @Test("a file appears in one step, when it is complete")
    func noHalfFile() throws {
        try withService { server in
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes(Array("old".utf8)))).status == 201)
            let location = try server.begin(.v8, "/files/f", Array("new".utf8))
            #expect(server.data.published("f") == Array("old".utf8))
            let done = try server.exchange(.append(.v8, location, at: 3, complete: true, .bytes(Array("er".utf8))))
            #expect([200, 204].contains(done.status))
            #expect(server.data.published("f") == Array("newer".utf8))
        }
    }

    @Test("If-None-Match: * and If-Match are honored at creation and at publication")
    func conditions() throws {
        try withService { server in
            let first = try server.begin(.v8, "/files/f", [1], [("If-None-Match", "*")])
            let second = try server.begin(.v8, "/files/f", [2], [("If-None-Match", "*")])
            let won = try server.exchange(.append(.v8, first, at: 1, complete: true, .bytes([])))
            #expect(won.status == 201)
            let lost = try server.exchange(.append(.v8, second, at: 1, complete: true, .bytes([])))
            #expect(lost.status == 412)
            #expect(lost.complete == true)
            #expect(server.data.published("f") == [1])
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
            #expect(server.data.published("f") == [4])
        }
    }

    @Test("STF-06: two lines of Upload-Complete are an invalid value", arguments: ["?1", "?0"])
    func repeatedCompleteness(value: String) throws {
        try withService { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let append = Request.append(.v8, location, at: 1, complete: true, .bytes([2])).with(
                "Upload-Complete", value)
            #expect(try server.exchange(append).status == 400)
            let creation = Request.creation(.v8, "PUT", "/files/g", complete: true, .bytes([2])).with(
                "Upload-Complete", value)
            let response = try server.exchange(creation)
            #expect(response.interim.isEmpty)
            #expect(response.status == 201)
        }
    }
}
