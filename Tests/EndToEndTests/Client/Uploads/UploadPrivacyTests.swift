import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: credentials and secrets of uploads", .blocking)
struct UploadPrivacyTests {
    private let bytes = Payload.bytes(500_000)

    private func cutOnce(_ model: ScriptedUpload) throws -> ScriptedServer {
        let counter = Counter()
        return try ScriptedServer { request, reply in
            guard request.method == "PUT", counter.next() == 1 else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 100_000)
            reply.reset()
        }
    }

    @Test("every request is authorized separately, and the added fields are not stored")
    func authorize() async throws {
        let model = ScriptedUpload()
        let server = try cutOnce(model)
        let counter = Counter()
        let fixture = try UploadFixture {
            $0.authorize = { request in
                let number = counter.next()
                await Task.yield()
                request.fields.set("Authorization", "Bearer SECRET-\(number)")
            }
        }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put, fields: ["Cookie": "SECRET", "X-Tenant": "7"]),
            from: DataSource(Data(bytes)))
        var checkpoints: [ResumeData] = []
        for await event in upload.events() { if case .checkpoint(let data) = event { checkpoints.append(data) } }
        #expect(server.requests.map { $0.fields["Authorization"] ?? "" } == (1...3).map { "Bearer SECRET-\($0)" })
        #expect(server.requests.allSatisfy { $0.fields["Cookie"] == "SECRET" && $0.fields["X-Tenant"] == "7" })
        #expect(checkpoints.count == 1)
        for data in checkpoints { #expect(!String(decoding: data.data, as: UTF8.self).contains("SECRET")) }
    }

    @Test("an authorize closure that throws ends the upload, which can be resumed")
    func authorizationFails() async throws {
        struct Expired: Error {}
        let model = ScriptedUpload()
        let server = try cutOnce(model)
        let counter = Counter()
        let fixture = try UploadFixture {
            $0.authorize = { _ in if counter.next() == 2 { throw Expired() } }
        }
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes))
        ).failure()
        #expect(error?.code == .authorizationFailed && error?.underlying is Expired)
        let data = try #require(error?.resumeData)
        _ = try await fixture.client.resumeUpload(data, from: DataSource(Data(bytes))).value()
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("a pause ends an authorize closure that is waiting")
    func pauseWhileAuthorizing() async throws {
        let fixture = try UploadFixture { $0.authorize = { _ in try await Task.sleep(for: .seconds(600)) } }
        let upload = fixture.client.upload(
            TransferRequest("http://127.0.0.1:1/", method: .put), from: DataSource(Data(bytes)))
        upload.start()
        #expect(await upload.pause() == nil)
        #expect(await upload.failure()?.code == .paused)
    }

    @Test("CLI-31: the observer receives every head, but neither credentials nor the upload resource")
    func observer() async throws {
        let model = ScriptedUpload(path: "/u/capability")
        let server = try cutOnce(model)
        let fixture = try UploadFixture {
            $0.fields = ["Authorization": "Bearer SECRET", "Cookie": "SECRET", "X-Api-Key": "SECRET"]
        }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x?sig=SECRET", method: .put), from: DataSource(Data(bytes)))
        _ = try await upload.value()
        let lines = fixture.observed.map { record in
            "\(record.message) \(record.fields.map { "\($0.name): \($0.value)" })"
        }
        #expect(lines.count == 6)
        for line in lines { #expect(!line.contains("SECRET") && !line.contains("capability")) }
        #expect(lines.contains { $0.contains("104") })
        // The location of the application's result is not secret.
        #expect(lines.last?.contains("/doc/1") == true)
    }

    @Test("RED-03 CLI-31: no credentials are sent to another origin")
    func otherOrigin() async throws {
        let model = ScriptedUpload()
        let other = try ScriptedServer { try model.serve($0, $1) }
        let first = try ScriptedServer { request, reply in
            try reply.respond(307, ["Location": other.url + "/there"])
        }
        let calls = Monitor(0)
        let fixture = try UploadFixture {
            $0.fields = ["Authorization": "Bearer SECRET", "X-Api-Key": "SECRET"]
            $0.isOtherOriginAllowed = true
            $0.authorize = { _ in calls.withLock { $0 += 1 } }
        }
        let upload = fixture.client.upload(
            TransferRequest(
                "http://me:SECRET@127.0.0.1:\(first.port)/x", method: .put,
                fields: ["Cookie": "SECRET", "X-Tenant": "7"]),
            from: DataSource(Data(bytes)))
        _ = await upload.failure()
        #expect(first.requests.allSatisfy { $0.fields["Authorization"] == "Bearer SECRET" })
        for request in other.requests {
            #expect(!request.fields.contains { $0.value.contains("SECRET") })
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test("CLI-31: no unknown field is sent to another origin or stored in resume data")
    func unknownFields() async throws {
        let file = ScriptedFile(bytes: bytes)
        let other = try ScriptedServer { try file.serve($0, $1, cut: 200_000) }
        let first = try ScriptedServer { _, reply in try reply.respond(307, ["Location": other.url + "/there"]) }
        let fixture = try UploadFixture {
            $0.fields = ["X-Badge": "SECRET", "Accept": "text/plain"]
            $0.retry.maxRetriesWithoutProgress = 0
        }
        let download = try fixture.download(first.url + "/x", ["X-Member": "SECRET", "User-Agent": "Test/1"])
        let data = try #require(await download.failure()?.resumeData)
        #expect(first.requests.allSatisfy { $0.fields["X-Badge"] == "SECRET" && $0.fields["X-Member"] == "SECRET" })
        #expect(!other.requests.isEmpty)
        for request in other.requests {
            #expect(!request.fields.contains { $0.value.contains("SECRET") })
            #expect(request.fields["Accept"] == "text/plain" && request.fields["User-Agent"] == "Test/1")
        }
        #expect(!String(decoding: data.data, as: UTF8.self).contains("SECRET"))
        #expect(data.request.fields["User-Agent"] == "Test/1")
    }

    @Test("a user and password in the URI become Basic credentials")
    func userinfo() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let fixture = try UploadFixture()
        let upload = fixture.client.upload(
            TransferRequest("http://me:p%40ss@127.0.0.1:\(server.port)/x", method: .put),
            from: DataSource(Data(bytes)))
        let checkpoint = Monitor<ResumeData?>(nil)
        for await event in upload.events() {
            if case .checkpoint(let data) = event { checkpoint.withLock { $0 = data } }
        }
        #expect(server.requests.first?.fields["Authorization"] == "Basic bWU6cEBzcw==")
        #expect(checkpoint.withLock { $0 }?.request.uri == server.url + "/x")
    }

    @Test("an upload resource of another origin is not used unless it is allowed")
    func otherOriginLocation() async throws {
        let model = ScriptedUpload()
        let other = try ScriptedServer { try model.serve($0, $1) }
        let server = try ScriptedServer { request, reply in
            var fields = model.announcement
            fields.set("Location", other.url + "/u/1")
            try reply.interim(104, fields)
            try model.receiveContent(reply, atMost: 100_000)
            reply.reset()
        }
        for isAllowed in [false, true] {
            model.inventory.drop(to: 0)
            let fixture = try UploadFixture {
                $0.isOtherOriginAllowed = isAllowed
                $0.fields = ["Authorization": "Bearer SECRET"]
            }
            let upload = fixture.client.upload(
                TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes)))
            let error = await upload.failure()
            if isAllowed {
                #expect(error == nil)
                expectSame(model.inventory.bytes, bytes)
                #expect(other.requests.allSatisfy { $0.fields["Authorization"] == nil })
                #expect(!other.requests.isEmpty)
            } else {
                #expect(error != nil)
                #expect(other.requests.isEmpty)
            }
        }
    }

    @Test("no credentials are sent to an upload resource of another origin that resume data names")
    func otherOriginResumption() async throws {
        let model = ScriptedUpload()
        let other = try ScriptedServer { try model.serve($0, $1) }
        let server = try ScriptedServer { request, reply in
            try reply.interim(104, model.announcement)
            reply.stall()
        }
        let fixture = try UploadFixture {
            $0.fields = ["Authorization": "Bearer SECRET"]
            $0.isOtherOriginAllowed = true
            $0.authorize = { $0.fields.set("Cookie", "SECRET") }
        }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes)))
        for await event in upload.events() { if case .checkpoint = event { break } }
        let data = try #require(upload.resumeData).data
        _ = await upload.pause()
        let text = String(decoding: data, as: UTF8.self)
        let forged = text.replacingOccurrences(of: server.url + "/u/1", with: other.url + "/u/1")
        let resumed = try fixture.client.resumeUpload(ResumeData(Data(forged.utf8)), from: DataSource(Data(bytes)))
        _ = await resumed.failure()
        #expect(!other.requests.isEmpty)
        #expect(other.requests.allSatisfy { $0.fields["Authorization"] == nil && $0.fields["Cookie"] == nil })
    }
}
