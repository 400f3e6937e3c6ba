import Testing

/// Draft section 4.4.
@Suite("Append", .serialized, .timeLimit(.minutes(15)), .blocking)
struct AppendTests {
    @Test("APP-01 APP-02 OFF-01: content at the right offset is appended and answered by ?0")
    func appends() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(10))
            let response = try server.exchange(.append(.v8, location, at: 10, complete: false, .bytes([1, 2, 3])))
            #expect(response.status == 204)
            #expect(response.complete == false)
            #expect(response.offset == 13)
            #expect(try server.retrieve(location).offset == 13)
        }
    }

    @Test("APP-03 APP-04: an upload in parts ends as one request would have")
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
            #expect(response.body == direct.body)
            #expect(response.location == "/files/b")
            func names(_ response: Response) -> Set<String> { Set(response.fields.map { $0.name.lowercased() }) }
            #expect(names(response) == names(direct))
            #expect(try server.retrieve(location).complete == true)
            #expect(server.published("b") == content)
        }
    }

    @Test(
        "APP-05 APP-06 APP-07 APP-08 PRB-01 PRB-02 PRB-03 VER-21: another offset is 409 and changes nothing",
        arguments: [9, 11, 0, 999_999_999_999_999], [Interop.v7, .v8])
    func otherOffset(offset: Int, version: Interop) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(10))
            let response = try server.exchange(.append(version, location, at: offset, complete: true, .bytes([1, 2])))
            #expect(response.status == 409)
            #expect(response.offset == 10)
            #expect(response.complete == false)
            let problem = try #require(response.problem)
            #expect(problem.type == "https://iana.org/assignments/http-problem-types#mismatching-upload-offset")
            #expect(problem.status == 409)
            #expect(problem.expectedOffset == 10)
            #expect(problem.providedOffset == Int64(offset))
            #expect(try server.retrieve(location).offset == 10)
            let right = try server.exchange(.append(version, location, at: 10, complete: true, .bytes([1, 2])))
            #expect(right.status == 201)
            #expect(server.published("f") == Payload.bytes(10) + [1, 2])
        }
    }

    @Test("APP-09 CMP-01 CMP-02: everything may be here; only ?1 completes")
    func emptyEnd() throws {
        try withServer { server in
            let content = Payload.bytes(10)
            let location = try server.begin(.v8, "/files/f", content, length: 10)
            let state = try server.retrieve(location)
            #expect(state.offset == 10)
            #expect(state.complete == false)
            #expect(server.published("f") == nil)
            let response = try server.exchange(.append(.v8, location, at: 10, complete: true, .bytes([])))
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(server.published("f") == content)
        }
    }

    @Test("APP-09: the last append may come without Content-Length, which means no content")
    func endWithoutContent() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let response = try server.exchange(.append(.v8, location, at: 1, complete: true, .none))
            #expect(response.complete == true)
            #expect(server.published("f") == [1])
        }
    }

    @Test("APP-10: an empty append with ?0 succeeds and changes nothing")
    func emptyPart() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1, 2])
            let response = try server.exchange(.append(.v8, location, at: 2, complete: false, .bytes([])))
            #expect(response.status == 204)
            #expect(response.complete == false)
            #expect(try server.retrieve(location).offset == 2)
        }
    }

    @Test("APP-11 APP-12: appends are told progress, and never a Location")
    func progress() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            try connection.send(Request.append(.v8, location, at: 1, complete: false, .declared(64 << 20)))
            let block = Payload.bytes(4 << 20)
            for _ in 0..<16 { try connection.send(block) }
            let response = try connection.readResponse()
            #expect(response.status == 204)
            #expect(response.interim.contains { ($0.offset ?? 0) > 1 })
            #expect(response.interim.allSatisfy { $0.location == nil && $0.status == 104 && $0.echoedVersion == 8 })
            #expect(!response.fields.contains("Location"))
        }
    }

    @Test("APP-13 APP-14: an interrupted append keeps a prefix and does not complete", arguments: [true, false])
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

    @Test("APP-15 STF-02 STF-03 STF-04 STF-05 STF-06: without a valid Upload-Offset an append is 400")
    func voidOffset() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5))
            let values: [String?] = [
                nil, "", "+5", "5.0", "\"5\"", "?1", "five", ":NQ==:", "@5", "-5", "1000000000000000", "5, 5", "5;",
                "5;A=1", "0x5", "5 5", "5,",
            ]
            for value in values {
                var request = Request.append(.v8, location, at: 5, complete: true, .bytes([1]))
                request.fields.removeAll { $0.0 == "Upload-Offset" }
                if let value { request.fields.append(("Upload-Offset", value)) }
                let response = try server.exchange(request)
                #expect(response.status == 400, "\(value ?? "absent")")
                #expect(response.complete == false)
                let state = try server.retrieve(location)
                #expect(state.offset == 5, "\(value ?? "absent")")
                #expect(state.complete == false)
            }
        }
    }

    @Test("STF-06: two lines of Upload-Offset are not one")
    func repeatedOffset() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5))
            let request = Request.append(.v8, location, at: 5, complete: true, .bytes([1])).with("Upload-Offset", "5")
            #expect(try server.exchange(request).status == 400)
            #expect(try server.retrieve(location).offset == 5)
        }
    }

    @Test(
        "STF-01 STF-11: other spellings of an Integer and of field names are the same",
        arguments: ["5", "05", "000000000000005", "5;a=b", "5;x", "5;a=\"x, y\";b=:AA==:"],
        ["Upload-Offset", "upload-OFFSET"])
    func sameOffset(value: String, name: String) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5))
            let request = Request(
                "PATCH", location,
                [
                    ("upload-draft-interop-version", "8"), ("CONTENT-TYPE", "application/partial-upload"),
                    (name, value),
                    ("UPLOAD-COMPLETE", "?1"),
                ], .bytes([1]))
            #expect(try server.exchange(request).status == 201)
            #expect(server.published("f") == Payload.bytes(5) + [1])
        }
    }

    @Test("STF-01: -0 is 0, and so is any number of zeros", arguments: ["-0", "00", "000000000000000"])
    func zero(value: String) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f")
            let request = Request(
                "PATCH", location,
                [("Content-Type", "application/partial-upload"), ("Upload-Offset", value), ("Upload-Complete", "?1")],
                .bytes([1]))
            #expect(try server.exchange(request).status == 201)
        }
    }

    @Test(
        "APP-16 STF-07: without a valid Upload-Complete an append is 400", arguments: [nil, "1", "true", "?2", ""],
        [Interop.v7, .v8])
    func voidCompleteness(value: String?, version: Interop) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            var request = Request.append(version, location, at: 1, complete: nil, .bytes([2]))
            if let value { request.fields.append(("Upload-Complete", value)) }
            let response = try server.exchange(request)
            #expect(response.status == 400)
            #expect(response.complete == false)
            #expect(try server.retrieve(location).offset == 1)
        }
    }

    @Test(
        "APP-17 VER-09 VER-20: another media type is 415 with Accept-Patch",
        arguments: ["application/octet-stream", "text/plain", "application/partial-uploads", nil],
        [Interop.v6, .v7, .v8])
    func otherMediaType(type: String?, version: Interop) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let fields = Request.versionField(version) + [("Upload-Offset", "1"), ("Upload-Complete", "?1")]
            var request = Request("PATCH", location, fields, .bytes([2]))
            if let type { request.fields.append(("Content-Type", type)) }
            let response = try server.exchange(request)
            #expect(response.status == 415)
            #expect(response.list("Accept-Patch").contains("application/partial-upload"))
            #expect(response.complete == false)
            #expect(try server.retrieve(location).offset == 1)
        }
    }

    @Test(
        "APP-18: the media type is compared without case and parameters",
        arguments: [
            "Application/Partial-Upload; x=y", "APPLICATION/PARTIAL-UPLOAD", "application/partial-upload ; a=\"b;c\"",
        ])
    func mediaTypeSpelling(type: String) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let request = Request(
                "PATCH", location, [("Content-Type", type), ("Upload-Offset", "1"), ("Upload-Complete", "?1")],
                .bytes([2]))
            #expect(try server.exchange(request).status == 201)
        }
    }

    @Test("APP-22: content codings belong to the creation")
    func contentCoding() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let request = Request.append(.v8, location, at: 1, complete: true, .bytes([2])).with(
                "Content-Encoding", "gzip")
            #expect(try server.exchange(request).status == 415)
            #expect(try server.retrieve(location).offset == 1)
        }
    }

    @Test(
        "APP-25 LEN-12: huge numbers neither wrap nor crash",
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
        "APP-24 APP-27: other methods on an upload are 405 with Allow", arguments: ["POST", "PUT", "TRACE", "SEARCH"])
    func otherMethods(method: String) throws {
        try withServer { server in
            let location = try server.begin()
            let response = try server.exchange(Request(method, location, [], .bytes([1])))
            #expect(response.status == 405)
            #expect(Set(response.list("Allow")).isSuperset(of: ["head", "get", "patch", "delete", "options"]))
            #expect(try server.retrieve(location).offset == 0)
        }
    }

    @Test("STF-09: fields of the protocol in a trailer mean nothing")
    func trailer() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            try connection.send(Request.append(.v8, location, at: 1, complete: false, .openChunks))
            try connection.sendChunk([2, 3])
            try connection.send("0\r\nUpload-Complete: ?1\r\nUpload-Offset: 0\r\nUpload-Length: 3\r\n\r\n")
            let response = try connection.readResponse()
            #expect(response.status == 204)
            #expect(response.complete == false)
            let state = try server.retrieve(location)
            #expect(state.offset == 3)
            #expect(state.complete == false)
            #expect(!state.fields.contains("Upload-Length"))
            #expect(server.published("f") == nil)
        }
    }

    @Test("H11-16: an append and what follows it in one segment are answered in order")
    func pipelined() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            let requests = [
                Request.append(.v8, location, at: 1, complete: false, .bytes([2])),
                .append(.v8, location, at: 2, complete: false, .bytes([3])), .retrieval(.v8, location),
                .append(.v8, location, at: 3, complete: true, .bytes([])), .get("/files/f"),
            ]
            try connection.send(requests.flatMap { $0.serialized(authority: server.authority) })
            #expect(try connection.readResponse(to: "PATCH").offset == 2)
            #expect(try connection.readResponse(to: "PATCH").offset == 3)
            #expect(try connection.readResponse(to: "HEAD").offset == 3)
            #expect(try connection.readResponse(to: "PATCH").complete == true)
            #expect(try connection.readResponse(to: "GET").body == [1, 2, 3])
        }
    }
}
