import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import Testing

@Suite("Client: creations of uploads", .blocking)
struct UploadCreationTests {
    private let bytes = Payload.bytes(300_000)

    private func upload(
        to server: ScriptedServer, method: HTTPSemantics.Method = .put, fields: Fields = [:], _ bytes: [UInt8]? = nil,
        change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) async throws -> UploadResult {
        let fixture = try UploadFixture(change)
        let request = TransferRequest(server.url + "/target?q=1", method: method, fields: fields)
        return try await fixture.client.upload(request, from: DataSource(Data(bytes ?? self.bytes))).value()
    }

    @Test("CLI-01 CLI-04: an optimistic creation is one request with version, completeness and length")
    func optimistic() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let result = try await upload(to: server, fields: ["Content-Type": "text/plain", "X-Tenant": "7"])
        #expect(result.requests == 1 && result.sent == 300_000 && result.acknowledged == 300_000)
        #expect(result.status == 200 && result.content == Array("stored".utf8))
        #expect(result.location == server.url + "/doc/1")
        #expect(result.uploadURI == server.url + "/u/1")
        expectSame(model.inventory.bytes, bytes)
        let request = try #require(server.requests.first)
        #expect(request.method == "PUT" && request.target == "/target?q=1")
        #expect(request.fields["Upload-Draft-Interop-Version"] == "8")
        #expect(request.fields["Upload-Complete"] == "?1")
        #expect(request.fields["Upload-Length"] == "300000")
        #expect(request.fields["Content-Length"] == "300000")
        #expect(request.fields["Content-Type"] == "text/plain" && request.fields["X-Tenant"] == "7")
        #expect(request.fields["Expect"] == nil)
    }

    @Test("The content of a short PUT is sent before the upload resource is known")
    func atOnce() async throws {
        // The server sends nothing before it has all content.
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(201, ["Upload-Complete": "?1"])
        }
        // If the content waited, the test would exceed its time limit.
        let result = try await upload(to: server, Payload.bytes(262_144)) {
            $0.interimResponseTimeout = .seconds(3600)
        }
        #expect(result.requests == 1 && result.sent == 262_144)
    }

    @Test(
        "The content of a short PUT with a precondition waits for the upload resource",
        arguments: ["the request", "the configuration", "authorize"])
    func conditional(source: String) async throws {
        let condition: Fields = ["If-None-Match": "*"]
        // The server neither reads the content nor announces an upload resource.
        let server = try ScriptedServer { _, reply in try reply.respond(412, ["Upload-Complete": "?1"]) }
        let fixture = try UploadFixture {
            $0.interimResponseTimeout = .seconds(3600)
            if source == "the configuration" { $0.fields = condition }
            if source == "authorize" { $0.authorize = { $0.fields.set("If-None-Match", "*") } }
        }
        let request = TransferRequest(
            server.url + "/target", method: .put, fields: source == "the request" ? condition : [:])
        let result = try await fixture.client.upload(request, from: DataSource(Data([1, 2, 3]))).response()
        #expect(result.status == 412 && result.sent == 0)
        #expect(server.requests.map { $0.fields["If-None-Match"] } == ["*"])
    }

    @Test("A client requests the limits of a target once, and respects the max-append-size of each response")
    func limitsOfResponse() async throws {
        let inventories = Monitor<[ScriptedUpload]>([])
        let server = try ScriptedServer { request, reply in
            let model = inventories.withLock { all in
                if request.method == "POST" {
                    all.append(ScriptedUpload(path: "/u/\(all.count)", limits: "max-append-size=3000000"))
                }
                return all.last ?? ScriptedUpload(limits: "max-append-size=3000000")
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture { _ in }
        let bytes = Payload.bytes(5_000_000)
        for (count, content) in [(1, bytes), (2, bytes), (3, [UInt8](bytes.prefix(4_000_000)))] {
            let request = TransferRequest(server.url + "/box/", method: .post)
            let result = try await fixture.client.upload(request, from: DataSource(Data(content))).value()
            #expect(result.status == 200)
            expectSame(inventories.withLock { $0.last?.inventory.bytes } ?? [], content)
            #expect(inventories.withLock { $0.count } == count)
        }
        #expect(server.requests.filter { $0.method == "OPTIONS" }.count == 1)
        // The optimistic creation does not send more than the server accepts, either.
        #expect(server.requests.allSatisfy { $0.contentCount <= 3_000_000 && $0.isComplete })
    }

    @Test("a request with the default method, GET, is sent as POST")
    func defaultMethod() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        _ = try await upload(to: server, method: .get)
        #expect(server.requests.map(\.method) == ["POST"])
    }

    @Test("CLI-03 CLI-28: a careful creation is empty, and the fields of the representation are sent only there")
    func careful() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        _ = try await upload(to: server, fields: ["Content-Encoding": "gzip", "X-Tenant": "7"]) {
            $0.creation = .careful
        }
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.map(\.method) == ["PUT", "PATCH"])
        let creation = try #require(server.requests.first)
        #expect(creation.fields["Upload-Complete"] == "?0" && creation.fields["Content-Length"] == "0")
        #expect(creation.fields["Content-Encoding"] == "gzip")
        let append = try #require(server.requests.last)
        #expect(append.fields["Content-Type"] == "application/partial-upload")
        #expect(append.fields["Upload-Offset"] == "0" && append.fields["Upload-Complete"] == "?1")
        #expect(append.fields["Content-Encoding"] == nil && append.fields["X-Tenant"] == "7")
    }

    @Test("a plain upload sends no field of the upload protocol")
    func plain() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try model.receiveContent(reply)
            try reply.respond(201, ["Location": "/doc"])
        }
        let result = try await upload(to: server) { $0.creation = .plain }
        #expect(result.status == 201 && result.location == server.url + "/doc" && result.uploadURI == nil)
        #expect(server.requests.first?.fields.contains { $0.name.lowercased().hasPrefix("upload-") } == false)
    }

    @Test("CLI-21: content is held until the 104 and then sent; without a 104, it is sent after the gate's timeout")
    func gate() async throws {
        for announces in [true, false] {
            let model = ScriptedUpload()
            let waited = Monitor<Duration?>(nil)
            let start = ContinuousClock.now
            let server = try ScriptedServer { request, reply in
                if announces {
                    try reply.interim(104, model.announcement)
                } else {
                    try reply.interim(102)
                }
                try model.receiveContent(reply, atMost: 1)
                waited.withLock { $0 = start.duration(to: .now) }
                try model.receiveContent(reply)
                try reply.respond(200, ["Upload-Complete": "?1"])
            }
            _ = try await upload(to: server) { $0.interimResponseTimeout = .seconds(announces ? 600 : 1) }
            let duration = try #require(waited.withLock { $0 })
            if announces {
                #expect(duration < EngineFixture.promptLimit)
            } else {
                #expect(duration > .milliseconds(700) && duration < EngineFixture.promptLimit)
            }
            expectSame(model.inventory.bytes, bytes)
        }
    }

    @Test("CLI-22: any number of interim responses of any kind is reported and changes nothing")
    func interims() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            for status in [102, 103, 199] { try reply.interim(status, ["X-Hint": "1"]) }
            try reply.interim(104, model.announcement)
            for _ in 0..<50 {
                try model.receiveContent(reply, atMost: 2000)
                try reply.interim(
                    104, Fields([ScriptedUpload.version, ("Upload-Offset", "\(model.inventory.count)")]))
            }
            try reply.interim(100)
            try model.receiveContent(reply)
            try reply.respond(200, ["Upload-Complete": "?1"])
        }
        let fixture = try UploadFixture()
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes)))
        let history = await upload.history()
        let statuses = history.compactMap { event -> Int? in
            if case .informational(let status, _) = event { return status.rawValue }
            return nil
        }
        #expect(statuses == [102, 103, 199] + Array(repeating: 104, count: 51) + [100])
        guard case .completed = history.last else {
            Issue.record("the last event is \(String(describing: history.last))")
            return
        }
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("CLI-23 CLI-34: a server without support for resumable uploads gets the upload in one request")
    func unsupported() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try model.receiveContent(reply)
            try reply.respond(200, [:], "ok")
        }
        let result = try await upload(to: server) { $0.interimResponseTimeout = .milliseconds(50) }
        #expect(result.status == 200 && result.requests == 1)
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("CLI-23: without a 104 an interruption leaves nothing to resume")
    func unsupportedAndCut() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try model.receiveContent(reply, atMost: 1000)
            reply.reset()
        }
        let fixture = try UploadFixture { $0.interimResponseTimeout = .milliseconds(50) }
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .post), from: DataSource(Data(bytes))
        ).failure()
        #expect(error?.code == .connectionLost)
        #expect(error?.resumeData == nil)
        #expect(server.requests.map(\.method) == ["POST"])
    }

    @Test("CLI-02: a 104 without a version or with another version is ignored", arguments: ["", "7", "08.0"])
    func otherVersion(version: String) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            var fields = model.announcement
            fields.remove("Upload-Draft-Interop-Version")
            if !version.isEmpty { fields.append("Upload-Draft-Interop-Version", version) }
            try reply.interim(104, fields)
            try model.receiveContent(reply, atMost: 1000)
            reply.reset()
        }
        let fixture = try UploadFixture { $0.interimResponseTimeout = .milliseconds(50) }
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .post), from: DataSource(Data(bytes))
        ).failure()
        #expect(error != nil && error?.resumeData == nil)
        #expect(!server.requests.contains { $0.target == "/u/1" })
    }

    @Test("the content of the final response is kept up to 1 MiB")
    func largeAnswer() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try model.receiveContent(reply)
            try reply.respond(200, ["Upload-Complete": "?1"], String(repeating: "x", count: 1_500_000))
        }
        let result = try await upload(to: server) { $0.interimResponseTimeout = .milliseconds(50) }
        #expect(result.content.count == 1 << 20)
    }

    @Test("the first stream of events has all events in order, and the progress ends at the total")
    func events() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let fixture = try UploadFixture()
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes)))
        var names: [String] = []
        var last: (sent: Int64, acknowledged: Int64) = (0, 0)
        for await event in upload.events() {
            switch event {
            case .started(let total): names.append("started \(total ?? -1)")
            case .checkpoint(let data): names.append("checkpoint \(data.position)")
            case .informational: names.append("informational")
            case .progress(let sent, let acknowledged, let total):
                #expect(sent >= last.sent && acknowledged >= last.acknowledged && total == 300_000)
                last = (sent, acknowledged)
            case .completed: names.append("completed")
            default: names.append("\(event)")
            }
        }
        #expect(names == ["started 300000", "informational", "checkpoint 0", "completed"])
        #expect(last == (300_000, 300_000))
        #expect(upload.progress.completedUnitCount == 300_000 && upload.progress.fractionCompleted == 1)
        #expect(upload.resumeData == nil)
    }

    @Test(
        "a request that cannot be sent is an invalid request, and no connection is made",
        arguments: ["/relative", "ftp://h/x", ""])
    func invalidURI(uri: String) async throws {
        let fixture = try UploadFixture()
        let upload = fixture.client.upload(TransferRequest(uri), from: DataSource(Data(bytes)))
        #expect(await upload.failure()?.code == .invalidRequest)
        #expect(fixture.observed.isEmpty)
    }

    @Test("a field that could split a message is never sent")
    func invalidField() async throws {
        let fixture = try UploadFixture()
        let request = TransferRequest("http://127.0.0.1:1/", method: .put, fields: ["X-Bad": "a\r\nX: y"])
        let upload = fixture.client.upload(request, from: DataSource(Data(bytes)))
        #expect(await upload.failure()?.code == .invalidRequest)
    }

    @Test("shutting the client down pauses running uploads, and ends those that start later; each can be resumed")
    func shutDown() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            reply.stall()
        }
        let fixture = try UploadFixture()
        let request = TransferRequest(server.url + "/x", method: .put)
        let running = fixture.client.upload(request, from: DataSource(Data(bytes)))
        for await event in running.events() { if case .checkpoint = event { break } }
        await fixture.client.shutDown()
        let error = await running.failure()
        #expect(error?.code == .paused)
        let data = try #require(error?.resumeData)
        let source = DataSource(Data(bytes))
        #expect(await fixture.client.upload(request, from: source).failure()?.code == .shutDown)
        let late = await (try fixture.client.resumeUpload(data, from: source)).failure()
        #expect(late?.code == .shutDown)
        _ = try await TransferClient(fixture.client.configuration).resumeUpload(
            try #require(late?.resumeData), from: source
        ).value()
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("content is held until the data to resume the upload is saved")
    func saved() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let early = Monitor<Int?>(nil)
        _ = try await upload(to: server) {
            $0.interimResponseTimeout = .seconds(600)
            $0.onCheckpoint = { data in
                try? await Task.sleep(for: .milliseconds(300))
                early.withLock { $0 = $0 ?? model.inventory.count }
                #expect(data.kind == .upload)
            }
        }
        #expect(early.withLock { $0 } == 0)
        expectSame(model.inventory.bytes, bytes)
    }
}
