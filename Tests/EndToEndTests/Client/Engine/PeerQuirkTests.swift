import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import TestSupport
import Testing

/// Behavior of other servers, as observed on the wire.
@Suite("Client: peculiarities of other servers", .blocking)
struct PeerQuirkTests {
    private let bytes = Payload.bytes(1_000_000)
    private static let dialects = [Dialect.interop3, .interop5, .interop6]

    /// The fields of a response of a server that speaks the version.
    private func fields(_ dialect: Dialect, offset: Int? = nil, complete: Bool? = nil) -> Fields {
        var fields: Fields = ["Upload-Draft-Interop-Version": "\(dialect.rawValue)"]
        if let offset { fields.append("Upload-Offset", "\(offset)") }
        if let complete {
            let field = dialect.completenessField(complete)
            fields.append(field.name, field.value)
        }
        return fields
    }

    private func announcement(_ dialect: Dialect) -> Fields {
        var fields = fields(dialect)
        fields.append("Location", "/u/1")
        return fields
    }

    private func run(
        _ dialect: Dialect, _ server: ScriptedServer, _ change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) async throws -> Result<UploadResult, TransferError> {
        let fixture = try UploadFixture {
            $0.dialect = dialect
            change(&$0)
        }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .post), from: try fixture.file(bytes))
        do throws(TransferError) { return .success(try await upload.outcome()) } catch { return .failure(error) }
    }

    @Test(
        "CLI-34: a final response without the completeness field, or with that of another version, ends the upload",
        arguments: dialects, [nil, "Upload-Incomplete: ?0", "Upload-Complete: ?1"])
    func finalAnswer(dialect: Dialect, field: String?) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try reply.interim(104, announcement(dialect))
            try model.receiveContent(reply)
            var fields: Fields = ["Upload-Offset": "\(model.inventory.count)"]
            if let parts = field?.split(separator: ": ") { fields.append(String(parts[0]), String(parts[1])) }
            try reply.respond(201, fields, "done")
        }
        let result = try await run(dialect, server).get()
        #expect(result.status == 201 && result.content == Array("done".utf8) && !result.isResponseLost)
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.count == 1)
    }

    @Test("CLI-32: after a 409 without an offset the client retrieves the offset", arguments: dialects)
    func conflictWithoutOffset(dialect: Dialect) async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch request.method {
            case "POST":
                try reply.interim(104, announcement(dialect))
                try model.receiveContent(reply, atMost: 300_000)
                reply.reset()
            case "HEAD":
                // The first offset is too low: the server has not yet written all bytes of the broken connection.
                let isFirst = counter.next() == 1
                try reply.respond(
                    204, fields(dialect, offset: isFirst ? 200_000 : model.inventory.count, complete: false))
            default:
                guard request.fields["Upload-Offset"] == "\(model.inventory.count)" else {
                    return try reply.respond(409, ["Content-Type": "text/plain"], "mismatched offset\n")
                }
                try model.receiveContent(reply)
                try reply.respond(204, ["Upload-Offset": "\(model.inventory.count)"])
            }
        }
        let result = try await run(dialect, server).get()
        #expect(result.status == 204)
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.map(\.method) == ["POST", "HEAD", "PATCH", "HEAD", "PATCH"])
    }

    @Test(
        "an upload that the server removes after a 409 ends with the code gone, without resume data",
        arguments: dialects)
    func destroyed(dialect: Dialect) async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch request.method {
            case "POST":
                try reply.interim(104, announcement(dialect))
                try model.receiveContent(reply, atMost: 300_000)
                reply.reset()
            case "HEAD" where counter.next() == 1:
                try reply.respond(204, fields(dialect, offset: model.inventory.count, complete: false))
            case "PATCH":
                try reply.respond(409, fields(dialect, offset: model.inventory.count, complete: false))
            default: try reply.respond(404)
            }
        }
        let outcome = try await run(dialect, server)
        guard case .failure(let error) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(error.code == .gone && error.resumeData == nil)
    }

    @Test(
        "an upload that the server removed at its end, before the response arrived, ends with the code gone",
        arguments: dialects)
    func forgotten(dialect: Dialect) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            guard request.method == "POST" else { return try reply.respond(404) }
            try reply.interim(104, announcement(dialect))
            try model.receiveContent(reply)
            reply.reset()
        }
        let outcome = try await run(dialect, server)
        guard case .failure(let error) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(error.code == .gone)
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("if HEAD reports a complete upload, the result states that the response was lost", arguments: dialects)
    func lostAnswer(dialect: Dialect) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            guard request.method == "POST" else {
                return try reply.respond(204, fields(dialect, offset: model.inventory.count, complete: true))
            }
            try reply.interim(104, announcement(dialect))
            try model.receiveContent(reply)
            reply.reset()
        }
        let result = try await run(dialect, server).get()
        #expect(result.isResponseLost)
        #expect(server.requests.map(\.method) == ["POST", "HEAD"])
    }
}
