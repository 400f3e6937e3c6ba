import ConformanceKit
import Testing

/// Versions of the draft, and the differences between them (draft appendix B), in each of the six versions: the harness tests
/// most rules in one version.
@Suite("Versions", .serialized, .blocking)
struct VersionTests {
    private static let old: [Interop] = [.v3, .v4, .v5, .v6]

    @Test(
        "VER-01 VER-02 STF-10: without a supported version there is no 104, and everything else works",
        arguments: [nil, "99", "2", "9", "0", "-8", "abc", "8.0", "\"8\"", "8, 8", "?1", "", "1000000000000000"])
    func unusable(version: String?) throws {
        try withServer { server in
            let fields = version.map { [("Upload-Draft-Interop-Version", $0)] } ?? []
            let entire = try server.exchange(
                Request("PUT", "/files/a", fields + [("Upload-Complete", "?1")], .bytes(Payload.bytes(10))))
            #expect(entire.status == 201)
            #expect(entire.interim.isEmpty)
            #expect(!entire.fields.contains("Upload-Draft-Interop-Version"))
            #expect(server.published("a") == Payload.bytes(10))
            let part = try server.exchange(
                Request("PUT", "/files/b", fields + [("Upload-Complete", "?0")], .bytes([1])))
            #expect(part.status == 201)
            #expect(part.interim.isEmpty)
            let location = try #require(part.location)
            let state = try server.exchange(Request("HEAD", location, fields))
            #expect(state.status == 204)
            #expect(state.offset == 1)
            let appended = try server.exchange(
                Request(
                    "PATCH", location,
                    fields + [
                        ("Content-Type", "application/partial-upload"), ("Upload-Offset", "1"),
                        ("Upload-Complete", "?1"),
                    ], .bytes([2])))
            #expect(appended.status == 201)
            #expect(appended.interim.isEmpty)
            #expect(server.published("b") == [1, 2])
        }
    }

    @Test(
        "VER-03 VER-10 VER-11 CRE-01: in every version, announcements and responses have the fields of this version",
        arguments: Interop.allCases
    )
    func creation(version: Interop) throws {
        try withServer { server in
            let part = try server.exchange(
                .creation(version, "PUT", "/files/a", complete: false, .bytes(Payload.bytes(10))))
            #expect(part.status == 201)
            #expect(part.states(complete: false, in: version))
            let announced = try #require(part.interim.first)
            #expect(announced.status == 104)
            #expect(announced.echoedVersion == Int64(version.rawValue))
            #expect(announced.location == part.location)
            if version <= .v6 { #expect(part.offset == 10) }
            let entire = try server.exchange(
                .creation(version, "PUT", "/files/b", complete: true, .bytes(Payload.bytes(7))))
            #expect(entire.status == 201)
            #expect(entire.states(complete: true, in: version))
            if version <= .v6 {
                #expect(entire.location == entire.interim.first?.location)
                #expect(entire.value("Content-Location") == "/files/b")
                #expect(entire.offset == 7)
            } else {
                #expect(entire.location == "/files/b")
            }
            #expect(server.published("b") == Payload.bytes(7))
        }
    }

    @Test("VER-04: with --announce-without-version 104 has the version of the request, or none if the request has none")
    func publishedProtocol() throws {
        try withServer("--announce-without-version") { server in
            let response = try server.exchange(.creation(nil, complete: true, .bytes([1])))
            #expect(response.interim.first?.status == 104)
            #expect(response.interim.first?.location?.isEmpty == false)
            #expect(response.interim.first?.fields.contains("Upload-Draft-Interop-Version") == false)
            #expect(response.location == "/files/file.bin")
            let draft = try server.exchange(.creation(.v5, "PUT", "/files/b", complete: true, .bytes([1])))
            #expect(draft.interim.first?.echoedVersion == 5)
        }
    }

    @Test(
        "VER-02 VER-04: with --announce-without-version a request with an unsupported version gets no 104",
        arguments: ["9", "2", "abc"])
    func publishedProtocolUnusable(version: String) throws {
        try withServer("--announce-without-version") { server in
            let request = Request.creation(nil, complete: true, .bytes([1])).with(
                "Upload-Draft-Interop-Version", version)
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(response.interim.isEmpty)
        }
    }

    @Test("VER-05: version 3 ignores Upload-Complete, later versions ignore Upload-Incomplete")
    func otherField() throws {
        try withServer { server in
            let third = try server.exchange(
                Request("PUT", "/files/a", Request.versionField(.v3) + [("Upload-Complete", "?0")], .bytes([1])))
            #expect(third.status == 201)
            #expect(third.interim.isEmpty)
            #expect(server.published("a") == [1])
            let fifth = try server.exchange(
                Request("PUT", "/files/b", Request.versionField(.v5) + [("Upload-Incomplete", "?1")], .bytes([1])))
            #expect(fifth.status == 201)
            #expect(fifth.interim.isEmpty)
            #expect(server.published("b") == [1])
        }
    }

    @Test("VER-10 VER-12 VER-13: in versions 3 to 6 every response has the offset, including 409", arguments: old)
    func offsets(version: Interop) throws {
        try withServer { server in
            let location = try server.begin(version, "/files/f", Payload.bytes(10))
            let wrong = try server.exchange(.append(version, location, at: 9, complete: false, .bytes([1])))
            #expect(wrong.status == 409)
            #expect(wrong.offset == 10)
            #expect(wrong.states(complete: false, in: version))
            let state = try server.retrieve(location, version)
            #expect(state.status == 204)
            #expect(state.offset == 10)
            #expect(state.states(complete: false, in: version))
            let part = try server.exchange(.append(version, location, at: 10, complete: false, .bytes([1])))
            #expect(part.status == 201)
            #expect(part.offset == 11)
            let done = try server.exchange(.append(version, location, at: 11, complete: true, .bytes([])))
            #expect(done.isSuccessful)
            #expect(done.offset == 11)
            #expect(done.states(complete: true, in: version))
        }
    }

    @Test(
        "VER-14: up to version 6, HEAD and DELETE with a field of the upload's state are refused", arguments: old,
        ["Upload-Offset: 0", "Upload-Complete: ?0", "Upload-Incomplete: ?1"])
    func stateOnRetrieval(version: Interop, line: String) throws {
        try withServer { server in
            let location = try server.begin(version, "/files/f", [1])
            let parts = line.split(separator: ":").map(String.init)
            for method in ["HEAD", "DELETE"] {
                let request = Request(method, location, Request.versionField(version)).with(
                    parts[0], String(parts[1].dropFirst()))
                #expect(try server.exchange(request).status == 400)
            }
            #expect(try server.retrieve(location, version).offset == 1)
        }
    }

    @Test(
        "VER-14: from version 7 on, HEAD and DELETE ignore a field of the upload's state",
        arguments: [Interop.v7, .v8])
    func stateOnRetrievalIgnored(version: Interop) throws {
        try withServer { server in
            let location = try server.begin(version, "/files/f", [1])
            let head = Request.retrieval(version, location).with("Upload-Offset", "0").with("Upload-Complete", "?1")
            #expect(try server.exchange(head).offset == 1)
            #expect(
                try server.exchange(Request.cancellation(version, location).with("Upload-Offset", "0")).status == 204)
        }
    }

    @Test("VER-15: up to version 6, an inactive upload gets 404", arguments: old)
    func inactive(version: Interop) throws {
        try withServer { server in
            let canceled = try server.begin(version, "/files/f", [1])
            #expect(try server.exchange(.cancellation(version, canceled)).status == 204)
            let invalid = try server.begin(.v8, "/files/g", [1], length: 2)
            _ = try server.exchange(.append(.v8, invalid, at: 1, complete: false, .chunks([Payload.bytes(5)])))
            for location in [canceled, invalid, "/uploads/none"] {
                for request in [
                    Request.retrieval(version, location), .append(version, location, at: 1, complete: true, .bytes([])),
                    .cancellation(version, location),
                ] {
                    #expect(try server.exchange(request).status == 404)
                }
            }
        }
    }

    @Test("VER-19: Upload-Limit has the lifetime in expires in version 6, and in max-age in later versions")
    func lifetime() throws {
        try withServer("--max-age", "1h") { server in
            let sixth = try server.exchange(.creation(.v6, "PUT", "/files/a", complete: false, .bytes([1])))
            let expires = try #require(sixth.limits?["expires"])
            #expect((3590...3600).contains(expires))
            for version in [Interop.v7, .v8] {
                let later = try server.exchange(.creation(version, "PUT", "/files/b", complete: false, .bytes([1])))
                #expect(later.limits?["expires"] == nil)
                #expect((3590...3600).contains(try #require(later.limits?["max-age"])))
            }
        }
    }

    @Test("VER-20: in version 7 every response to an append has Upload-Complete")
    func alwaysStated() throws {
        try withServer("--max-size", "100") { server in
            let location = try server.begin(.v7, "/files/f", [1])
            let refusals = [
                Request.append(.v7, location, at: 5, complete: true, .bytes([1])),
                .append(.v7, location, at: 1, complete: true, .bytes(Payload.bytes(200))),
                Request("PATCH", location, Request.versionField(.v7) + [("Content-Type", "text/plain")], .bytes([1])),
                .append(.v7, location, at: 1, complete: false, .bytes([2])),
            ]
            for request in refusals { #expect(try server.exchange(request).complete == false) }
            #expect(try server.exchange(.append(.v7, location, at: 2, complete: true, .bytes([]))).complete == true)
        }
    }

    @Test("VER-22: an upload created in one version can be continued in any other", arguments: Interop.allCases)
    func mixed(first: Interop) throws {
        try withServer { server in
            for second in Interop.allCases {
                let name = "f\(second.rawValue)"
                let location = try server.begin(first, "/files/" + name, Payload.bytes(10))
                let state = try server.retrieve(location, second)
                #expect(state.status == 204)
                #expect(state.offset == 10)
                #expect(state.states(complete: false, in: second))
                #expect(state.echoedVersion == Int64(second.rawValue))
                let part = try server.exchange(.append(second, location, at: 10, complete: false, .bytes([1])))
                #expect(part.status == (second <= .v6 ? 201 : 204))
                #expect(part.states(complete: false, in: second))
                let done = try server.exchange(.append(second, location, at: 11, complete: true, .bytes([2])))
                #expect(done.status == 201)
                #expect(done.states(complete: true, in: second))
                #expect(server.published(name) == Payload.bytes(10) + [1, 2])
                #expect(try server.retrieve(location, first).states(complete: true, in: first))
            }
        }
    }

    @Test(
        "VER-22: a request without a version gets a response in the version of the creation",
        arguments: Interop.allCases)
    func storedVersion(version: Interop) throws {
        try withServer { server in
            let location = try server.begin(version, "/files/f", [1])
            let state = try server.retrieve(location, nil)
            #expect(state.offset == 1)
            #expect(state.states(complete: false, in: version))
        }
    }

    @Test(
        "VER-25 VER-26: the length of a completing creation is recorded from version 4 on",
        arguments: [Interop.v4, .v5, .v6, .v7])
    func derivedLength(version: Interop) throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(Request.creation(version, complete: true, .declared(10)))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(Payload.bytes(4))
            connection.close()
            try server.awaitInterruption("PUT")
            let state = try server.retrieve(location, version)
            #expect(state.offset == 4)
            #expect(state.length == 10)
            let wrong = try server.exchange(.append(version, location, at: 4, complete: true, .bytes(Payload.bytes(7))))
            #expect(wrong.status == 400)
            let right = try server.exchange(.append(version, location, at: 4, complete: true, .bytes(Payload.bytes(6))))
            #expect(right.isSuccessful)
        }
    }
}

extension Interop: Comparable {
    static func < (left: Interop, right: Interop) -> Bool { left.rawValue < right.rawValue }
}
