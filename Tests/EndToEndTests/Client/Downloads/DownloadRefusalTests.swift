import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: refused downloads, redirections and credentials", .blocking)
struct DownloadRefusalTests {
    private let file = ScriptedFile(bytes: Payload.bytes(800_000))

    // MARK: Statuses

    @Test(
        "the content of an error response never becomes the file, and is part of the error",
        arguments: [(400, "refused"), (401, "unauthorized"), (403, "unauthorized"), (404, "refused"), (410, "refused")])
    func refused(status: Int, code: String) async throws {
        let server = try ScriptedServer { try $1.respond(status, ["ETag": "\"page\""], "an error page") }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        try Data("old".utf8).write(to: URL(filePath: fixture.destination))
        let error = await download.failure()
        #expect(error?.code.rawValue == code && error?.status?.rawValue == status)
        #expect(error?.response?.content == Array("an error page".utf8))
        #expect(error?.resumeData == nil)
        #expect(fixture.downloads == ["result.bin"])
        #expect(fixture.result == Array("old".utf8))
        #expect(server.requests.count == 1)
    }

    @Test(
        "after an error status in the middle of a download the received bytes are kept, and the download can be resumed"
    )
    func refusedLater() async throws {
        let file = file
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 1: try file.serve(request, reply, cut: 300_000)
            case 2: try reply.respond(403, [:], "expired")
            default: try file.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .unauthorized)
        #expect(fixture.partials.count == 1)
        let data = try #require(error?.resumeData)
        #expect(data.position == 300_000 && data.total == 800_000 && data.path == fixture.destination)
        _ = try await fixture.client.resumeDownload(data).value()
        expectSame(fixture.result, file.bytes)
        #expect(server.requests.last?.fields["Range"] == "bytes=300000-")
    }

    @Test("after a temporary failure the client waits for the time in Retry-After, and tries again")
    func retryAfter() async throws {
        let file = file
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if counter.next() == 1 { return try reply.respond(503, ["Retry-After": "1"], "busy") }
            try file.serve(request, reply)
        }
        let fixture = try UploadFixture()
        let history = await (try fixture.download(server.url)).history()
        expectSame(fixture.result, file.bytes)
        #expect(history.interruptions.map(\.code) == [.serverUnavailable])
        #expect(history.interruptions.map(\.status) == [503])
        let times = server.requests.map(\.arrivedAt)
        #expect(times[1] - times[0] >= .seconds(1))
    }

    @Test("repeated failures of a server end the download with resume data, which can be used later")
    func exhausted() async throws {
        let file = file
        let isBroken = Monitor(true)
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if counter.next() > 1, isBroken.withLock({ $0 }) { return try reply.respond(502) }
            try file.serve(request, reply, cut: 500_000)
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 2 }
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .serverUnavailable && error?.canRetry == true)
        #expect(server.requests.count == 3)
        isBroken.withLock { $0 = false }
        _ = try await fixture.client.resumeDownload(try #require(error?.resumeData)).value()
        expectSame(fixture.result, file.bytes)
    }

    @Test("a refused connection is an interruption, too")
    func unreachable() async throws {
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 1 }
        let download = try fixture.download("http://127.0.0.1:1/")
        let history = await download.history()
        #expect(await download.failure()?.code == .cannotConnect)
        #expect(history.interruptions.count == 1)
        #expect(fixture.downloads.isEmpty)
    }

    // MARK: Requests that cannot be made

    @Test("a Range field, a method other than GET and a scheme other than HTTP are rejected before anything is sent")
    func invalidRequests() async throws {
        let server = try ScriptedServer { try $1.respond(200) }
        let fixture = try UploadFixture()
        let requests = [
            TransferRequest(server.url, fields: ["Range": "bytes=0-1"]),
            TransferRequest(server.url, fields: ["If-Range": "\"a\""]), TransferRequest(server.url, method: .post),
            TransferRequest("ftp://127.0.0.1/"), TransferRequest(server.url, fields: ["X": "a\r\nb: c"]),
        ]
        for request in requests {
            let error = await fixture.client.download(request, to: .temporary).failure()
            #expect(error?.code == .invalidRequest)
        }
        #expect(server.requests.isEmpty)
        #expect(fixture.tickets.isEmpty)
    }

    // MARK: Redirections

    @Test(
        "RED-02: every redirection of a GET is followed, and every request starts at the original URI",
        arguments: [301, 302, 303, 307, 308])
    func redirection(status: Int) async throws {
        let file = file
        let server = try ScriptedServer { request, reply in
            if request.target == "/a/b" { return try reply.respond(status, ["Location": "../c?x=1#f"], "moved") }
            try file.serve(request, reply, cut: 500_000)
        }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url + "/a/b").value()
        expectSame(fixture.result, file.bytes)
        #expect(server.requests.map(\.target) == ["/a/b", "/c?x=1", "/a/b", "/c?x=1"])
        #expect(result.requests == 4)
        #expect(server.requests[2].fields["Range"] == "bytes=500000-")
    }

    @Test("RED-03: credentials are sent to the origin of the caller's URI only")
    func credentials() async throws {
        let file = file
        let other = try ScriptedServer { try file.serve($0, $1) }
        let place = other.url
        let server = try ScriptedServer { _, reply in try reply.respond(302, ["Location": place + "/f?signature=s"]) }
        let calls = Counter()
        let fixture = try UploadFixture {
            $0.fields = ["X-Api-Key": "SECRET", "X-Tenant": "7"]
            $0.authorize = { request in
                calls.next()
                request.fields.set("X-Auth-Token", "SECRET")
            }
        }
        let address = server.url.replacingOccurrences(of: "//", with: "//user:SECRET@")
        let result = try await fixture.download(address, ["Cookie": "SECRET"]).value()
        #expect(result.requests == 2)
        let first = try #require(server.requests.first).fields
        for name in ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"] { #expect(first.contains(name)) }
        let second = try #require(other.requests.first).fields
        for name in ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"] { #expect(!second.contains(name)) }
        #expect(second["X-Tenant"] == nil)
        #expect(second["Host"] == "127.0.0.1:\(other.port)")
        #expect(calls.value == 1)
        let shown = fixture.observed.map { "\($0.message) \($0.fields)" }.joined()
        #expect(!shown.contains("SECRET") && !shown.contains("signature"))
        #expect(fixture.observed.count == 4)
    }

    @Test("RED-02: more than ten redirections end the download")
    func loop() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(302, ["Location": "/again"]) }
        let fixture = try UploadFixture()
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .tooManyRedirects)
        #expect(server.requests.count == 11)
        #expect(fixture.downloads.isEmpty)
    }

    @Test(
        "a redirection without a usable Location ends the download",
        arguments: [[:], ["Location": "ftp://127.0.0.1/"]] as [Fields])
    func nowhere(fields: Fields) async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(302, fields) }
        let fixture = try UploadFixture()
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .refused && error?.status == 302)
    }

    @Test("an authorize closure that throws ends the download, which can be resumed")
    func authorizationFails() async throws {
        struct Expired: Error {}
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1, cut: 500_000) }
        let counter = Counter()
        let fixture = try UploadFixture { $0.authorize = { _ in if counter.next() == 2 { throw Expired() } } }
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .authorizationFailed)
        _ = try await fixture.client.resumeDownload(try #require(error?.resumeData)).value()
        expectSame(fixture.result, file.bytes)
    }
}
