import ConformanceKit
import Testing

/// Appends (draft section 4.4).
@Suite("Append", .serialized, .blocking)
struct AppendTests {
    @Test("APP-03 APP-04: an upload in several appends gets the same response as an upload in a single request")
    func sameAsOneRequest() throws {
        try withServer { server in
            let content = Payload.bytes(30)
            let direct = try server.exchange(.creation(.v8, "PUT", "/files/a", complete: true, .bytes(content)))
            let location = try server.begin(.v8, "/files/b", Array(content[..<7]))
            #expect(
                try server.exchange(.append(.v8, location, at: 7, complete: false, .bytes(Array(content[7..<20]))))
                    .status == 204)
            let response = try server.exchange(
                .append(.v8, location, at: 20, complete: true, .bytes(Array(content[20...]))))
            #expect(response.complete == true)
            #expect(response.status == direct.status)
            #expect(response.content == direct.content)
            #expect(response.location == "/files/b")
            func names(_ response: Response) -> Set<String> { Set(response.fields.map { $0.name.lowercased() }) }
            #expect(names(response) == names(direct))
            #expect(try server.retrieve(location).complete == true)
            #expect(server.published("b") == content)
        }
    }

    @Test(
        "APP-13 APP-14: an interrupted append keeps the bytes that arrived, and does not complete the upload",
        arguments: [true, false])
    func interrupted(byReset: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(100_000)
            let location = try server.begin(.v8, "/files/f", Array(content[..<1000]))
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 1000, complete: true, .declared(99_000)))
            try connection.send(content[1000..<61_000])
            try connection.awaitAcknowledgment()
            byReset ? connection.reset() : connection.close()
            try server.awaitInterruption("PATCH")
            let state = try server.retrieve(location)
            #expect(state.offset == 61_000)
            #expect(state.complete == false)
            #expect(server.published("f") == nil)
            let rest = try server.exchange(
                .append(.v8, location, at: 61_000, complete: true, .bytes(Array(content[61_000...]))))
            #expect(rest.status == 201)
            #expect(server.published("f")?.sha256 == content.sha256)
        }
    }

    @Test(
        "APP-25 LEN-12: a huge Content-Length is refused, and does not change the upload",
        arguments: [Int64.max, Int64.max - 1, 1 << 53, 999_999_999_999_999])
    func hugeContentLength(count: Int64) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            try connection.send(Request.append(.v8, location, at: 1, complete: true, .declared(count)))
            let response = try connection.readResponse()
            #expect((400..<500).contains(response.status))
            let state = try server.retrieve(location)
            #expect(state.offset == 1)
            #expect(!state.fields.contains("Upload-Length"))
            let huge = try server.connect()
            try huge.send(Request.creation(.v8, "PUT", "/files/g", complete: true, .declared(Int64.max)))
            #expect(try huge.readResponse().status == 413)
        }
    }

    @Test(
        "APP-24 APP-27: other methods on an upload get 405 with Allow", arguments: ["POST", "PUT", "TRACE", "SEARCH"])
    func otherMethods(method: String) throws {
        try withServer { server in
            let location = try server.begin()
            let response = try server.exchange(Request(method, location, [], .bytes([1])))
            #expect(response.status == 405)
            #expect(Set(response.list("Allow")).isSuperset(of: ["head", "get", "patch", "delete", "options"]))
            #expect(try server.retrieve(location).offset == 0)
        }
    }

    @Test("H11-16: an append and the next request in one segment are answered in order")
    func pipelined() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            let requests = [
                Request.append(.v8, location, at: 1, complete: false, .bytes([2])),
                .append(.v8, location, at: 2, complete: false, .bytes([3])), .retrieval(.v8, location),
                .append(.v8, location, at: 3, complete: true, .bytes([])), .get("/files/f"),
            ]
            try connection.send(pipelined: requests)
            #expect(try connection.readResponse(to: "PATCH").offset == 2)
            #expect(try connection.readResponse(to: "PATCH").offset == 3)
            #expect(try connection.readResponse(to: "HEAD").offset == 3)
            #expect(try connection.readResponse(to: "PATCH").complete == true)
            #expect(try connection.readResponse(to: "GET").content == [1, 2, 3])
        }
    }
}
