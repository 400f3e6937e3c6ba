import ConformanceKit
import HTTPTestSupport
import Testing

/// Tests lengths (draft section 4.1.3): the option `--require-length`, and responses that the draft does not require.
@Suite("Lengths", .timeLimit(.minutes(30)))
struct LengthTests {
    private func isInconsistent(_ response: Response) -> Bool {
        response.status == 400 && response.complete == false
            && response.problem?.type == "https://iana.org/assignments/http-problem-types#inconsistent-upload-length"
            && response.problem?.status == 400
    }

    @Test("LEN-06: content beyond the length invalidates an announced creation")
    func overrunOfCreation() throws {
        try withService { server in
            let response = try server.exchange(.creation(.v8, complete: true, length: 10, .chunks([Payload.bytes(11)])))
            #expect(response.status == 400)
            #expect(response.complete == false)
            let location = try #require(response.interim.first?.location)
            #expect([404, 410].contains(try server.retrieve(location).status))
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("LEN-08: a creation with ?1 and too few bytes does not complete the upload")
    func tooShort() throws {
        try withService { server in
            let response = try server.exchange(.creation(.v8, complete: true, length: 10, .chunks([Payload.bytes(8)])))
            let location = try #require(response.interim.first?.location)
            #expect(isInconsistent(response))
            #expect(try server.retrieve(location).complete != true)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("CRE-10: with an invalid Upload-Complete, a truncated file is noticed by its length")
    func truncatedPlain() throws {
        try withService { server in
            let request = Request.creation(.v8, complete: nil, length: 10, .bytes(Payload.bytes(5)))
                .with("Upload-Complete", "false")
            let response = try server.exchange(request)
            #expect(response.status == 400)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test(
        "--require-length refuses chunked content that would complete an upload of unknown length, as it may be cut"
    )
    func requiredLength() throws {
        try withService(settings: .with { $0.server.isLengthRequired = true }) { server in
            let chunks = Request.Content.chunks([Payload.bytes(5), Payload.bytes(5)])
            for version in Interop.allCases {
                let creation = try server.exchange(.creation(version, complete: true, chunks))
                #expect(creation.status == 411)
                let location = try server.begin(version, "/files/\(version.rawValue)", Payload.bytes(3))
                let response = try server.exchange(.append(version, location, at: 3, complete: true, chunks))
                #expect(response.status == 411)
                #expect(response.text.contains("length-required"))
                // The upload continues in parts with an empty last append.
                let part = try server.exchange(.append(version, location, at: 3, complete: false, chunks))
                #expect(part.isSuccessful)
                let end = try server.exchange(.append(version, location, at: 13, complete: true, .bytes([])))
                #expect(end.status == 201)
            }
            #expect(try server.exchange(Request("PUT", "/files/plain", [], chunks)).status == 411)
            #expect(
                try server.exchange(Request("PUT", "/files/plain", [("Upload-Length", "10")], chunks)).status == 201)
            let known = Request.creation(.v8, "PUT", "/files/known", complete: true, length: 10, chunks)
            #expect(try server.exchange(known).status == 201)
        }
        try withService { server in
            let response = try server.exchange(.creation(.v8, complete: true, .chunks([Payload.bytes(5)])))
            #expect(response.status == 201)
        }
    }
}
