import ConformanceKit
import HTTPTestSupport
import Testing

/// Versions of the draft, and the differences between them (draft appendix B). The harness verifies the rules of each
/// version. These tests verify decisions of our server that the draft does not require: complete uploads without a version,
/// fields of other versions, and the responses to requests without a version.
@Suite("Versions", .blocking)
struct VersionTests {
    @Test(
        "VER-01 VER-02 STF-10: without a supported version there is no 104, and everything else works",
        arguments: [nil, "9", "8.0"])
    func unusable(version: String?) throws {
        try withService { server in
            let fields = version.map { [("Upload-Draft-Interop-Version", $0)] } ?? []
            let entire = try server.exchange(
                Request("PUT", "/files/a", fields + [("Upload-Complete", "?1")], .bytes(Payload.bytes(10))))
            #expect(entire.status == 201)
            #expect(entire.interim.isEmpty)
            #expect(!entire.fields.contains("Upload-Draft-Interop-Version"))
            #expect(server.data.published("a") == Payload.bytes(10))
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
            #expect(server.data.published("b") == [1, 2])
        }
    }

    @Test(
        "VER-03 VER-10 VER-11 CRE-01: in every version, announcements and responses have the fields of this version",
        arguments: Interop.allCases, Transport.allCases)
    func creation(version: Interop, transport: Transport) throws {
        try withService(transport) { server in
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
            #expect(server.data.published("b") == Payload.bytes(7))
        }
    }

    @Test("VER-04: with --announce-without-version 104 has the version of the request, or none if the request has none")
    func publishedProtocol() throws {
        try withService(settings: .with { $0.server.isAnnouncedWithoutVersion = true }) { server in
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
        try withService(settings: .with { $0.server.isAnnouncedWithoutVersion = true }) { server in
            let request = Request.creation(nil, complete: true, .bytes([1])).with(
                "Upload-Draft-Interop-Version", version)
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(response.interim.isEmpty)
        }
    }

    @Test("VER-05: version 3 ignores Upload-Complete, later versions ignore Upload-Incomplete")
    func otherField() throws {
        try withService { server in
            let third = try server.exchange(
                Request("PUT", "/files/a", Request.versionField(.v3) + [("Upload-Complete", "?0")], .bytes([1])))
            #expect(third.status == 201)
            #expect(third.interim.isEmpty)
            #expect(server.data.published("a") == [1])
            let fifth = try server.exchange(
                Request("PUT", "/files/b", Request.versionField(.v5) + [("Upload-Incomplete", "?1")], .bytes([1])))
            #expect(fifth.status == 201)
            #expect(fifth.interim.isEmpty)
            #expect(server.data.published("b") == [1])
        }
    }

    @Test(
        "VER-14: from version 7 on, HEAD and DELETE ignore a field of the upload's state",
        arguments: [Interop.v7, .v8])
    func stateOnRetrievalIgnored(version: Interop) throws {
        try withService { server in
            let location = try server.begin(version, "/files/f", [1])
            let head = Request.retrieval(version, location).with("Upload-Offset", "0").with("Upload-Complete", "?1")
            #expect(try server.exchange(head).offset == 1)
            #expect(
                try server.exchange(Request.cancellation(version, location).with("Upload-Offset", "0")).status == 204)
        }
    }

    @Test(
        "VER-22: a request without a version gets a response in the version of the creation",
        arguments: Interop.allCases)
    func storedVersion(version: Interop) throws {
        try withService { server in
            let location = try server.begin(version, "/files/f", [1])
            let state = try server.retrieve(location, nil)
            #expect(state.offset == 1)
            #expect(state.states(complete: false, in: version))
        }
    }

    @Test(
        "VER-17 PRB-04: versions 6 and 7 refuse appends to a completed upload with the problem type completed-upload",
        arguments: [
            (Interop.v6, 0, 0), (.v6, 0, 1), (.v6, 5, 1), (.v7, 0, 0), (.v7, 0, 1), (.v7, 5, 0), (.v7, 5, 1),
        ])
    func completedUpload(version: Interop, offset: Int, count: Int) throws {
        try withService { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5))
            #expect(try server.exchange(.append(.v8, location, at: 5, complete: true, .bytes([]))).status == 201)
            let response = try server.exchange(
                .append(version, location, at: offset, complete: true, .bytes(Payload.bytes(count))))
            #expect(response.status == 400)
            #expect(response.problem?.type == "https://iana.org/assignments/http-problem-types#completed-upload")
            #expect(response.complete == false)
        }
    }
}
