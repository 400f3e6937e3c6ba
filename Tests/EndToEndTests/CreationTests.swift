import Testing

/// Draft section 4.2.
@Suite("Creation", .serialized, .timeLimit(.minutes(15)), .blocking)
struct CreationTests {
    @Test("CRE-01 CRE-02 CRE-03 VER-03: the announcement comes before any content, with Location and limits")
    func announcement() throws {
        try withServer("--max-size", "1000") { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(100)))
            let interim = try connection.readInterim()
            #expect(interim.status == 104)
            #expect(interim.location?.isEmpty == false)
            #expect(interim.fields.values("Location").count == 1)
            #expect(interim.limits?["max-size"] == 1000)
            #expect(interim.echoedVersion == 8)
            try connection.send(Payload.bytes(100))
            let response = try connection.readResponse()
            #expect(response.status == 201)
            #expect(response.interim.count == 1)
            #expect(server.published("file.bin") == Payload.bytes(100))
        }
    }

    @Test(
        "CRE-04 CRE-05 CRE-06 CRE-07 OFF-01: a part is answered by 201, Location, limits and ?0",
        arguments: ["PUT", "POST"])
    func part(method: String) throws {
        try withServer("--max-size", "1000") { server in
            let target = method == "PUT" ? "/files/file.bin" : "/files/"
            let response = try server.exchange(
                .creation(.v8, method, target, complete: false, .bytes(Payload.bytes(25))))
            #expect(response.status == 201)
            #expect(response.complete == false)
            #expect(response.limits?["max-size"] == 1000)
            let state = try server.retrieve(try #require(response.location))
            #expect(state.offset == 25)
            #expect(state.complete == false)
            #expect(server.publishedNames().isEmpty)
        }
    }

    @Test("CRE-07 CRE-12: a whole representation is answered by its target, with ?1 and the file's Location")
    func whole() throws {
        try withServer { server in
            let response = try server.exchange(.creation(.v8, complete: true, .bytes(Payload.bytes(1000))))
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(response.location == "/files/file.bin")
            #expect(server.published("file.bin") == Payload.bytes(1000))
            let again = try server.exchange(.creation(.v8, complete: true, .bytes(Payload.bytes(500, seed: 2))))
            #expect([200, 204].contains(again.status))
            #expect(again.complete == true)
            #expect(server.published("file.bin") == Payload.bytes(500, seed: 2))
        }
    }

    @Test(
        "CRE-08 CRE-19 CRE-20: a method that the target does not know is refused by the target",
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
        "CRE-09 CRE-10 STF-07: without a valid Upload-Complete the request is a plain one",
        arguments: [nil, "1", "true", "?2", "?T", "? 1", "", "\"?1\"", "?1, ?1"])
    func plain(value: String?) throws {
        try withServer { server in
            var request = Request.creation(.v8, complete: nil, .bytes(Payload.bytes(10)))
            if let value { request.fields.append(("Upload-Complete", value)) }
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(response.interim.isEmpty)
            #expect(response.location == "/files/file.bin")
            #expect(server.published("file.bin") == Payload.bytes(10))
        }
    }

    @Test("CRE-11 CRE-27: every Location of one creation is the same string, and leads to the upload")
    func locations() throws {
        try withServer { server in
            let content = Payload.bytes(3 << 20)
            let response = try server.exchange(.creation(.v8, complete: false, .bytes(content)))
            let locations =
                response.interim.flatMap { $0.fields.values("Location") } + response.fields.values("Location")
            #expect(locations.count >= 2)
            #expect(Set(locations).count == 1)
            let state = try server.retrieve(resolve(try #require(response.location), against: "/files/file.bin"))
            #expect(state.offset == Int64(content.count))
        }
    }

    @Test("CRE-13 LEN-11: empty content with ?1 is a file without bytes", arguments: [nil, 0])
    func emptyWhole(length: Int?) throws {
        try withServer { server in
            let response = try server.exchange(.creation(.v8, complete: true, length: length, .bytes([])))
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(server.published("file.bin") == [])
        }
    }

    @Test("CRE-14: empty content with ?0 is an upload at offset 0")
    func emptyPart() throws {
        try withServer { server in
            let response = try server.exchange(.creation(.v8, complete: false, .bytes([])))
            #expect(response.status == 201)
            let state = try server.retrieve(try #require(response.location))
            #expect(state.offset == 0)
            #expect(state.complete == false)
            #expect(server.publishedNames().isEmpty)
        }
    }

    @Test(
        "CRE-15 CRE-16 CRE-18 H11-13: an interrupted creation keeps its prefix and its length, and is not complete",
        arguments: [true, false])
    func interrupted(byReset: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(100_000)
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(100_000)))
            let location = try #require(try connection.readInterim().location)
            try connection.send(content[..<40_000])
            try connection.awaitAcknowledgment()
            byReset ? connection.reset() : connection.close()
            try server.awaitInterruption("PUT")
            let state = try server.retrieve(location)
            #expect(state.offset == 40_000)
            #expect(state.complete == false)
            #expect(state.length == 100_000)
            #expect(server.publishedNames().isEmpty)
            let rest = try server.exchange(
                .append(.v8, location, at: 40_000, complete: true, .bytes(Array(content[40_000...]))))
            #expect(rest.status == 201)
            #expect(rest.complete == true)
            #expect(server.published("file.bin")?.sha256 == content.sha256)
        }
    }

    @Test("CRE-17 OFF-03: the length is recorded from Upload-Length")
    func declaredLength() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/a", Payload.bytes(10), length: 100)
            #expect(try server.retrieve(location).length == 100)
        }
    }

    @Test("CRE-19 CMP-02: the creation's method, target and name hold at completion, whatever the append says")
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

    @Test("CRE-21 INT-07: slow content is told by progress responses, at a bounded rate")
    func progress() throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: false, .declared(64 << 20)))
            let block = Payload.bytes(4 << 20)
            for _ in 0..<16 { try connection.send(block) }
            let response = try connection.readResponse()
            #expect(response.status == 201)
            let offsets = response.interim.dropFirst().map(\.offset)
            #expect(offsets.allSatisfy { $0 != nil })
            let values = offsets.compactMap { $0 }
            #expect(values == values.sorted())
            #expect((values.last ?? 0) <= 64 << 20)
            // No more than one for a mebibyte: nobody needs to know that often.
            #expect(values.count <= 64)
        }
    }

    @Test("CRE-24 CRE-25 SEC-01 SEC-03: upload resources are distinct, and their names tell nothing")
    func distinct() throws {
        try withServer { server in
            let connection = try server.connect()
            var locations: Set<String> = []
            for number in 0..<200 {
                let response = try connection.exchange(.creation(.v8, complete: false, .bytes([UInt8(number)])))
                let location = try #require(response.location)
                let name = try #require(location.split(separator: "/").last)
                // 128 bits need 22 characters of base64 or 32 hexadecimal digits.
                #expect(name.utf8.count >= 22)
                #expect(locations.insert(location).inserted)
                if number % 2 == 0 { #expect(try connection.exchange(.cancellation(.v8, location)).status == 204) }
            }
            let names = locations.compactMap { $0.split(separator: "/").last }
            // Counters and times would show as prefixes or suffixes that repeat.
            #expect(Set(names.map { $0.prefix(8) }).count == names.count)
            #expect(Set(names.map { $0.suffix(8) }).count == names.count)
        }
    }

    @Test("CRE-26: the upload can be addressed as soon as it is announced", arguments: [true, false])
    func usableAtOnce(cuts: Bool) throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(100)))
            let location = try #require(try connection.readInterim().location)
            if cuts { connection.reset() }
            let state = try server.retrieve(location)
            #expect(state.isSuccessful)
            #expect(state.offset == 0)
            withExtendedLifetime(connection) {}
        }
    }

    @Test("CRE-28: Upload-Offset in a creation means nothing", arguments: [Interop.v7, .v8])
    func offsetIgnored(version: Interop) throws {
        try withServer { server in
            let request = Request.creation(version, complete: false, .bytes([1, 2, 3])).with("Upload-Offset", "7")
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(try server.retrieve(try #require(response.location)).offset == 3)
        }
    }

    @Test("CRE-29: chunked content with ?1 completes at the last chunk")
    func chunked() throws {
        try withServer { server in
            let parts = [Payload.bytes(10), Payload.bytes(70_000, seed: 2), Payload.bytes(1, seed: 3)]
            let response = try server.exchange(.creation(.v8, complete: true, .chunks(parts)))
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(server.published("file.bin") == parts.flatMap { $0 })
        }
    }

    @Test("a file appears in one step, when it is whole")
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
