import ConformanceKit
import TestSupport
import Testing

/// Tests the completion of an upload in situations that no case of the harness can cause: the file, crashes of the
/// server, and error responses of the target.
@Suite("Completion and replay", .serialized, .blocking)
struct CompletionTests {
    /// Creates and completes an upload of five bytes.
    private func completed(_ server: ServerProcess) throws -> (location: String, response: Response) {
        let location = try server.begin(.v8, "/files/f", Payload.bytes(5))
        return (location, try server.exchange(.append(.v8, location, at: 5, complete: true, .bytes([]))))
    }

    @Test(
        "APP-20 APP-28: a valid repeat of the completing append gets the same response, and changes nothing",
        arguments: [Interop.v8, .v5, .v4, .v3, nil])
    func repeated(version: Interop?) throws {
        try withServer { server in
            let (location, first) = try completed(server)
            // Another file has the name now, so the test would detect a second publication.
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes([9]))).isSuccessful)
            let again = try server.exchange(.append(version, location, at: 5, complete: true, .bytes([])))
            #expect(again.status == first.status)
            #expect(again.content == first.content)
            #expect(again.states(complete: true, in: version))
            #expect(again.value("ETag") == first.value("ETag"))
            #expect(server.published("f") == [9])
        }
    }

    @Test("APP-20: the stored response survives a restart of the server")
    func repeatedAfterRestart() throws {
        try withServer { server in
            let (location, first) = try completed(server)
            try server.crash()
            try server.restart()
            let again = try server.exchange(.append(.v8, location, at: 5, complete: true, .bytes([])))
            #expect(again.status == first.status)
            #expect(again.value("ETag") == first.value("ETag"))
            #expect(again.complete == true)
        }
    }

    @Test("CMP-03: if the file cannot be published, the completing append gets an error with ?1")
    func targetRefuses() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/d", [1])
            // Meanwhile a directory of that name is created.
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([1]))).isSuccessful)
            let response = try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([])))
            #expect(response.status == 409)
            #expect(response.complete == true)
            let state = try server.retrieve(location)
            #expect(state.complete == true)
            let again = try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([])))
            #expect(again.status == 409)
            #expect(again.complete == true)
        }
    }

    @Test("CAN-05: the cancellation of a completed upload does not remove its file")
    func completedStays() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status == 201)
            #expect([204, 404, 410].contains(try server.exchange(.cancellation(.v8, location)).status))
            #expect(server.published("f") == [1])
        }
    }
}
