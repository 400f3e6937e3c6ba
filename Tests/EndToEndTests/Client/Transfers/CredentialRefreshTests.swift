import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: refresh of credentials", .blocking)
struct CredentialRefreshTests {
    private let bytes = Payload.bytes(2_000_000)

    private func fixture(
        _ token: RotatingToken, _ change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) throws -> UploadFixture {
        try UploadFixture { configuration in
            configuration.creation = .careful
            configuration.maxRequestContentLength = 500_000
            token.configure(&configuration)
            change(&configuration)
        }
    }

    private func upload(_ client: TransferClient, _ server: ScriptedServer) -> Upload {
        client.upload(TransferRequest(server.url + "/target", method: .put), from: DataSource(Data(bytes)))
    }

    @Test(
        "after a 401 to any request of an upload the credentials are refreshed once, and no acknowledged byte is sent again",
        arguments: 1...6)
    func upload(rejected: Int) async throws {
        let model = ScriptedUpload()
        let token = RotatingToken()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if counter.next() == rejected { token.rotate() }
            guard token.isAccepted(request) else { return try token.reject(reply) }
            try model.serve(request, reply)
        }
        let fixture = try fixture(token)
        let result = try await upload(fixture.client, server).value()
        #expect(result.status == 200)
        expectSame(model.inventory.bytes, bytes)
        #expect(token.refreshes == (rejected <= 5 ? 1 : 0))
        if (2...5).contains(rejected) { #expect(server.requests[rejected].method == "HEAD") }
    }

    @Test("a 401 to the HEAD after an interruption causes a refresh, and the upload continues at the offset")
    func retrieval() async throws {
        let model = ScriptedUpload()
        let token = RotatingToken()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.method == "PATCH", counter.next() == 2 {
                try model.receiveContent(reply, atMost: 100_000)
                token.rotate()
                return reply.reset()
            }
            guard token.isAccepted(request) else { return try token.reject(reply) }
            try model.serve(request, reply)
        }
        let fixture = try fixture(token)
        _ = try await upload(fixture.client, server).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(token.refreshes == 1)
        #expect(server.requests.filter { $0.method == "HEAD" }.count == 2)
    }

    @Test("many transfers whose token expires at the same time share one refresh")
    func shared() async throws {
        let token = RotatingToken()
        let file = ScriptedFile(bytes: Payload.bytes(100_000))
        let server = try ScriptedServer { request, reply in
            guard token.isAccepted(request) else { return try token.reject(reply) }
            try file.serve(request, reply)
        }
        token.rotate()
        let fixture = try fixture(token)
        let downloads = (0..<30).map { number in
            fixture.client.download(
                TransferRequest(server.url + "/\(number)"), to: .file(fixture.directory.path + "/\(number)"))
        }
        for download in downloads { download.start() }
        for download in downloads { #expect(try await download.value().size == 100_000) }
        #expect(token.refreshes == 1)
    }

    @Test("a 401 to fresh credentials ends the upload with unauthorized, and the upload can be resumed")
    func rejectedTwice() async throws {
        let model = ScriptedUpload()
        let token = RotatingToken()
        let isOpen = Monitor(false)
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            guard isOpen.withLock({ $0 }) || counter.next() <= 2 else { return try token.reject(reply) }
            try model.serve(request, reply)
        }
        let fixture = try fixture(token)
        let error = await upload(fixture.client, server).failure()
        #expect(error?.code == .unauthorized && error?.status == 401 && token.refreshes == 1)
        isOpen.withLock { $0 = true }
        let data = try #require(error?.resumeData)
        _ = try await fixture.client.resumeUpload(data, from: DataSource(Data(bytes))).value()
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("an error of the refresh closure ends a download with authorizationFailed, and the download can be resumed")
    func failingRefresh() async throws {
        struct Expired: Error {}
        let file = ScriptedFile(bytes: bytes)
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 1: try file.serve(request, reply, cut: 300_000)
            case 2: try reply.respond(401)
            default: try file.serve(request, reply)
            }
        }
        let fixture = try UploadFixture { $0.refreshCredentials = { _ in throw Expired() } }
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .authorizationFailed && error?.underlying is Expired && error?.status == 401)
        _ = try await fixture.client.resumeDownload(try #require(error?.resumeData)).value()
        expectSame(fixture.result, bytes)
        #expect(server.requests.last?.fields["Range"] == "bytes=300000-")
    }

    @Test("a 401 in the middle of a download causes a refresh, and only the missing bytes are requested")
    func download() async throws {
        let file = ScriptedFile(bytes: bytes)
        let token = RotatingToken()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            guard token.isAccepted(request) else { return try token.reject(reply) }
            let isFirst = counter.next() == 1
            if isFirst { token.rotate() }
            try file.serve(request, reply, cut: isFirst ? 700_000 : nil)
        }
        let fixture = try fixture(token)
        _ = try await fixture.download(server.url).value()
        expectSame(fixture.result, bytes)
        #expect(token.refreshes == 1)
        #expect(server.requests.map { $0.fields["Range"] } == [nil, "bytes=700000-", "bytes=700000-"])
    }

    @Test("a 401 of another origin, to which a redirection led, causes no refresh")
    func otherOrigin() async throws {
        let token = RotatingToken()
        let other = try ScriptedServer { try $1.respond(401, ["WWW-Authenticate": "Bearer"]) }
        let server = try ScriptedServer { try $1.respond(302, ["Location": other.url + "/x"]) }
        let fixture = try fixture(token)
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .unauthorized && token.refreshes == 0 && other.requests.count == 1)
        #expect(other.requests.first?.fields["Authorization"] == nil)
    }

    @Test(
        "pausing and canceling a transfer that waits for a refresh take effect immediately", arguments: [true, false])
    func stopping(isPause: Bool) async throws {
        let (started, begun) = AsyncStream<Void>.makeStream()
        let server = try ScriptedServer { try $1.respond(401) }
        let fixture = try UploadFixture {
            $0.refreshCredentials = { _ in
                begun.yield()
                // The refresh ends only when the client is shut down.
                try await Task.sleep(for: .seconds(3600))
            }
        }
        let download = try fixture.download(server.url)
        download.start()
        for await _ in started { break }
        if isPause { _ = await download.pause() } else { await download.cancel() }
        #expect(await download.failure()?.code == (isPause ? .paused : .cancelled))
        await fixture.client.shutDown()
    }

    @Test("the deletion of an upload also refreshes the credentials")
    func deletion() async throws {
        let model = ScriptedUpload()
        let token = RotatingToken()
        let server = try ScriptedServer { request, reply in
            guard token.isAccepted(request) else { return try token.reject(reply) }
            if request.method == "PATCH" { return reply.stall() }
            try model.serve(request, reply)
        }
        let fixture = try fixture(token)
        let upload = upload(fixture.client, server)
        upload.start()
        #expect(server.awaitRequests(2))
        token.rotate()
        await upload.cancel()
        #expect(token.refreshes == 1)
        #expect(server.requests.map(\.method).suffix(2) == ["DELETE", "DELETE"])
        #expect(await upload.failure()?.resumeData == nil)
    }
}
