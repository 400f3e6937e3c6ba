import ConformanceKit
import HTTPTestSupport
import Testing
import TestSupport

/// Interim responses (draft sections 4.2.2, 4.4.2 and 5; RFC 9110 section 15.2): small socket buffers, and choices of this server.
@Suite("Interim responses", .blocking)
struct InterimResponseTests {
    @Test(
        "INT-01: the server sends 100 (Continue) for an append too; for a plain upload it sends 100 and no 104",
        arguments: [Interop.v3, .v5, .v8])
    func continued(version: Interop) throws {
        try withSocket { server in
            let location = try server.begin(version, "/files/f", [1])
            let append = try server.connect()
            try append.open(.append(version, location, at: 1, complete: true, .declared(1)))
            try append.send([2])
            #expect(try append.readResponse().isSuccessful)
            let plain = try server.connect()
            try plain.open(Request("PUT", "/files/g", Request.versionField(version), .declared(1)))
            try plain.send([2])
            #expect(try plain.readResponse().interim.map(\.status) == [100])
        }
    }

    @Test("INT-03 INT-04 H11-16: with pipelining and a slow reader, responses keep their order and their bytes")
    func pipelined() throws {
        try withSocket { server in
            let file = Payload.bytes(8 << 20)
            #expect(
                try server.exchange(Request("PUT", "/files/large", [], .bytes(file))).status
                    == 201)
            let connection = try server.connect(receiveBuffer: 8 << 10)
            let requests = [
                Request.get("/files/large"),
                .creation(.v8, "PUT", "/files/a", complete: true, .bytes(Payload.bytes(100))),
                .creation(.v8, "PUT", "/files/b", complete: false, .bytes(Payload.bytes(50))), .get("/healthz"),
            ]
            try connection.send(pipelined: requests)
            let first = try connection.readResponse()
            #expect(first.interim.isEmpty)
            #expect(first.content == file)
            let second = try connection.readResponse()
            #expect(second.status == 201)
            #expect(second.complete == true)
            // The first 104 contains the upload's Location, which the client cannot get in another way. So the server
            // waits for space in the send buffer instead of dropping this 104.
            #expect(second.interim.first?.location != nil)
            let third = try connection.readResponse()
            #expect(third.complete == false)
            #expect(third.interim.allSatisfy { $0.status == 104 })
            let fourth = try connection.readResponse()
            #expect(fourth.interim.isEmpty)
            #expect(fourth.text == "ok\n")
        }
    }

    @Test("INT-06: a client that does not read can still upload")
    func unreadResponses() throws {
        try withSocket { server in
            let connection = try server.connect(receiveBuffer: 4 << 10)
            connection.stopReceiving()
            let content = Payload.bytes(24 << 20)
            try connection.send(Request.creation(.v8, complete: true, .declared(Int64(content.count))))
            try connection.send(content)
            let published: [UInt8]? = pollUntil(within: .seconds(60)) { server.data.published("file.bin") }
            #expect(published?.sha256 == content.sha256)
        }
    }

    @Test(
        "INT-09: an Expect value other than 100-continue gets 417", arguments: ["foo", "100-continue, foo", "200-ok"])
    func unknownExpectation(value: String) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(5)).with("Expect", value))
            let response = try connection.readResponse()
            #expect(response.status == 417)
            #expect(response.interim.isEmpty)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("VER-18 CRE-11: only the first 104 has Location", arguments: [Interop.v5, .v6, .v7, .v8])
    func locationOnce(version: Interop) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request.creation(version, complete: false, .declared(64 << 20)))
            let block = Payload.bytes(8 << 20)
            for _ in 0..<8 { try connection.send(block) }
            let response = try connection.readResponse()
            #expect(response.interim.first?.location != nil)
            #expect(response.interim.dropFirst().allSatisfy { !$0.fields.contains("Location") })
            #expect(response.interim.allSatisfy { $0.echoedVersion == Int64(version.rawValue) })
        }
    }

    @Test("versions 3 and 4 have no progress responses", arguments: [Interop.v3, .v4])
    func noProgress(version: Interop) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request.creation(version, complete: false, .declared(48 << 20)))
            let block = Payload.bytes(8 << 20)
            for _ in 0..<6 { try connection.send(block) }
            let response = try connection.readResponse()
            #expect(response.interim.count == 1)
            #expect(response.interim.first?.location == response.location)
        }
    }
}
