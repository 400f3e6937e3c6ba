import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: cookies", .blocking)
struct SessionCookieTests {
    private let bytes = Payload.bytes(1_200_000)

    private func value(_ request: ReceivedRequest) -> String? {
        request.fields["Cookie"]?.trimmingCharacters(in: .whitespaces)
    }

    @Test("an upload sends the cookies that its first response has set with all later requests, even after a pause")
    func upload() async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.method == "POST" {
                return try reply.respond(
                    201, model.state().merging(["Location": model.path, "Set-Cookie": "id=a-secret-value; Path=/"]))
            }
            if request.method == "PATCH", counter.next() == 1 {
                try model.receiveContent(reply, atMost: 300_000)
                return reply.stall()
            }
            try model.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let configuration = URLSessionConfiguration.ephemeral
        let session = fixture.session(recorder, configuration: configuration) { $0.creation = .careful }
        let file = try fixture.file(bytes)
        let task = session.uploadTask(with: try SessionFixture.request(server.url + "/a", "POST"), fromFile: file)
        task.resume()
        #expect(eventually { model.inventory.count >= 300_000 })
        let data = try #require(await task.cancelByProducingResumeData())
        #expect(!String(decoding: data, as: UTF8.self).contains("a-secret-value"))
        let resumed = session.uploadTask(withResumeData: data)
        resumed.resume()
        #expect(recorder.succeeds(resumed))
        expectSame(model.inventory.bytes, bytes)
        let cookies = server.requests.map { "\($0.method) \(value($0) ?? "none")" }
        #expect(
            cookies == [
                "POST none", "PATCH id=a-secret-value", "HEAD id=a-secret-value", "PATCH id=a-secret-value",
            ])
    }

    @Test("every hop of a download can set cookies, and each request has those of its own URL")
    func redirection() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            switch request.target {
            case "/first":
                try reply.respond(302, ["Location": "/dir/second", "Set-Cookie": "first=1; Path=/dir"])
            default:
                let isCut = request.fields["Range"] == nil
                try ScriptedFile(bytes: bytes, fields: file.fields.merging(["Set-Cookie": "second=2"]))
                    .serve(request, reply, cut: isCut ? 500_000 : nil)
            }
        }
        let fixture = try SessionFixture()
        let configuration = URLSessionConfiguration.ephemeral
        let answer = SessionAnswer<URL>()
        fixture.session(configuration: configuration).downloadTask(
            with: try SessionFixture.request(server.url + "/first", "GET", ["Cookie": "own=1"]),
            completionHandler: answer.handler
        ).resume()
        #expect(try answer.value().status == 206)
        let seen = server.requests.map { "\($0.target) \(value($0) ?? "none")" }
        // The cookies of the storage replace the request's own field, as in FoundationNetworking.
        #expect(
            seen == [
                "/first own=1", "/dir/second first=1", "/first own=1", "/dir/second first=1; second=2",
            ])
        #expect(Set((configuration.httpCookieStorage?.cookies ?? []).map(\.name)) == ["first", "second"])
    }

    @Test("a request that does not handle cookies neither sends nor stores them")
    func unhandled() async throws {
        let file = ScriptedFile(bytes: bytes, fields: ["ETag": "\"one\"", "Set-Cookie": "b=2"])
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try SessionFixture()
        let configuration = URLSessionConfiguration.ephemeral
        let session = fixture.session(configuration: configuration)
        for handlesCookies in [false, true, true] {
            var request = try SessionFixture.request(server.url + "/a")
            request.httpShouldHandleCookies = handlesCookies
            let answer = SessionAnswer<URL>()
            session.downloadTask(with: request, completionHandler: answer.handler).resume()
            #expect(try answer.value().status == 200)
        }
        #expect(server.requests.map { value($0) } == [nil, nil, "b=2"])
    }
}
