import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: final responses and refusals", .blocking)
struct UploadRefusalTests {
    private let bytes = Payload.bytes(2_000_000)

    private func upload(to server: ScriptedServer, _ fixture: UploadFixture) -> Upload {
        fixture.client.upload(TransferRequest(server.url + "/target", method: .put), from: DataSource(Data(bytes)))
    }

    @Test(
        "CLI-11: a response with ?1 is the application's final response, whatever its status, and no request follows",
        arguments: [400, 500])
    func applicationError(status: Int) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply)
            try reply.respond(status, ["Upload-Complete": "?1"], "no good")
        }
        let upload = upload(to: server, try UploadFixture())
        let result = try await upload.response()
        #expect(result.status?.rawValue == status && result.content == Array("no good".utf8))
        #expect(server.requests.count == 1)
        let error = await upload.failure()
        #expect(error?.code == .refused && error?.status?.rawValue == status && error?.canRetry == false)
        #expect(error?.response?.content == Array("no good".utf8))
        #expect(error?.localizedDescription == error?.message)
        guard case .failed(let last)? = await upload.history().last else {
            Issue.record("the last event is not failed")
            return
        }
        #expect(last.code == .refused)
    }

    @Test("the error has the complete response of the target, up to 1 MiB", arguments: [400, 500])
    func largeRejection(status: Int) async throws {
        let content = String(repeating: "x", count: 700_000)
        let server = try ScriptedServer { request, reply in
            _ = try reply.readContent()
            try reply.respond(status, ["Upload-Complete": "?1"], content)
        }
        let error = await upload(to: server, try UploadFixture { $0.interimResponseTimeout = .milliseconds(50) })
            .failure()
        #expect(error?.response?.content.count == content.utf8.count)
    }

    @Test(
        "CLI-13: a 4xx without ?1 ends the upload; the error contains the response", arguments: [400, 405, 415, 422])
    func refused(status: Int) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply)
            try reply.respond(status, ["Upload-Complete": "?0"], "no good")
        }
        let error = await upload(to: server, try UploadFixture()).failure()
        #expect(error?.code == .refused && error?.status?.rawValue == status)
        #expect(error?.response?.content == Array("no good".utf8))
        #expect(error?.canRetry == false)
        #expect(!server.requests.contains { ["HEAD", "PATCH"].contains($0.method) })
    }

    @Test("401 and 403 have their own error code", arguments: [401, 403])
    func unauthorized(status: Int) async throws {
        let server = try ScriptedServer { request, reply in
            _ = try reply.readContent()
            try reply.respond(status)
        }
        let error = await upload(to: server, try UploadFixture { $0.interimResponseTimeout = .milliseconds(50) })
            .failure()
        #expect(error?.code == .unauthorized && error?.urlErrorCode == (status == 403 ? -1102 : -1013))
    }

    @Test("CLI-36: a final response that arrives while content is sent stops the sending, and the response is read")
    func early() async throws {
        let server = try ScriptedServer { request, reply in
            _ = try reply.readContent(atMost: 100_000)
            try reply.respond(400, ["Upload-Complete": "?1", "Connection": "close"], "enough")
        }
        let large = Payload.bytes(30_000_000)
        let fixture = try UploadFixture { $0.interimResponseTimeout = .milliseconds(50) }
        let result = try await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(large))
        ).response()
        #expect(result.status == 400 && result.content == Array("enough".utf8))
        #expect(result.sent < 30_000_000)
    }

    @Test("CLI-14: after a 413 the client sends less content in each further request")
    func smaller() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            let length = request.fields["Content-Length"].flatMap { Int($0) } ?? 0
            if length > 600_000 {
                if request.method == "PUT" { try reply.interim(104, model.announcement) }
                return try reply.respond(413, ["Upload-Complete": "?0", "Connection": "close"])
            }
            try model.serve(request, reply)
        }
        _ = try await upload(to: server, try UploadFixture()).value()
        expectSame(model.inventory.bytes, bytes)
        let refused = server.requests.compactMap { $0.fields["Content-Length"].flatMap { Int($0) } }
            .filter { $0 > 600_000 }
        #expect(Set(refused).count == refused.count)
    }

    @Test("CLI-17: an upload larger than max-size ends and is deleted")
    func tooLarge() async throws {
        let model = ScriptedUpload(limits: "max-size=1000")
        let server = try ScriptedServer { try model.serve($0, $1) }
        let error = await upload(to: server, try UploadFixture()).failure()
        #expect(error?.code == .tooLarge && error?.resumeData == nil)
        #expect(server.requests.map(\.method) == ["PUT", "DELETE"])
    }

    @Test("CLI-16: content larger than max-append-size is not sent; appends of that size follow")
    func appendSize() async throws {
        let model = ScriptedUpload(limits: "max-append-size=300000")
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            #expect(throws: (any Error).self) { try reply.readContent(atMost: 1) }
        }
        let result = try await upload(to: server, try UploadFixture()).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(result.sent == 2_000_000)
        let sizes = server.requests.filter { $0.method == "PATCH" }.compactMap { $0.fields["Content-Length"] }
        #expect(sizes == Array(repeating: "300000", count: 6) + ["200000"])
    }

    @Test("CLI-19: a second upload resource for one upload ends the upload")
    func twoLocations() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            var other = model.announcement
            other.set("Location", "/u/2")
            try reply.interim(104, other)
            reply.stall()
        }
        let error = await upload(to: server, try UploadFixture()).failure()
        #expect(error?.code == .locationChanged)
        #expect(server.requests.contains { $0.method == "DELETE" })
    }

    @Test("RED-02: 307 and 308 are followed with the same method and content", arguments: [307, 308])
    func redirections(status: Int) async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.target == "/target" { return try reply.respond(status, ["Location": "/elsewhere"]) }
            if request.target == "/u/1" { return try reply.respond(status, ["Location": "/u/moved"]) }
            if request.method == "PUT", counter.next() == 1 {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 10_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture()
        _ = try await upload(to: server, fixture).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.contains { $0.method == "PUT" && $0.target == "/elsewhere" })
        #expect(server.requests.contains { $0.method == "PATCH" && $0.target == "/u/moved" })
    }

    @Test("redirections that never end are an error")
    func endlessRedirection() async throws {
        let server = try ScriptedServer { request, reply in
            try reply.respond(307, ["Location": request.target + "x"])
        }
        let error = await upload(to: server, try UploadFixture()).failure()
        #expect(error?.code == .tooManyRedirects)
        #expect(server.requests.count < 30)
    }
}
