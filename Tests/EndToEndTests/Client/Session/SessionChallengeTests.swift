import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import Testing

@Suite("Session: authentication challenges", .blocking)
struct SessionChallengeTests {
    private let bytes = Payload.bytes(900_000)

    /// Rejects requests without the password `right`.
    private func isAuthorized(_ request: ReceivedRequest, _ name: String = "Authorization") -> Bool {
        let expected = "Basic " + Data("user:right".utf8).base64EncodedString()
        return request.fields[name]?.trimmingCharacters(in: .whitespaces) == expected
    }

    private func reject(_ reply: Reply) throws {
        try reply.respond(
            401, ["WWW-Authenticate": "Bearer realm=\"other\", Basic realm=\"the files\""], "log in")
    }

    private func fileServer() throws -> ScriptedServer {
        let file = ScriptedFile(bytes: bytes)
        return try ScriptedServer { request, reply in
            guard isAuthorized(request) else { return try reject(reply) }
            try file.serve(request, reply)
        }
    }

    private func credential(
        _ password: String, _ persistence: URLCredential.Persistence = .none
    ) -> URLCredential { URLCredential(user: "user", password: password, persistence: persistence) }

    @Test("the delegate answers a 401 until the credential is right, and gets the number of failures")
    func download() async throws {
        let server = try fileServer()
        let fixture = try SessionFixture()
        let configuration = URLSessionConfiguration.ephemeral
        let delegate = SessionExchangeDelegate(authenticate: { challenge in
            (.useCredential, credential(challenge.previousFailureCount < 2 ? "wrong" : "right", .forSession))
        })
        let task = fixture.session(delegate, configuration: configuration).downloadTask(
            with: try SessionFixture.request(server.url + "/a"))
        task.resume()
        #expect(try delegate.ending() == nil)
        expectSame(delegate.file ?? [], bytes)
        #expect(delegate.calls == ["challenge", "challenge", "challenge", "file", "metrics", "end"])
        #expect(delegate.challenges.map(\.previousFailureCount) == [0, 1, 2])
        let challenge = try #require(delegate.challenges.first)
        let space = challenge.protectionSpace
        #expect(space.realm == "the files" && space.host == "127.0.0.1" && space.port == Int(server.port))
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && space.protocol == "http")
        #expect((challenge.failureResponse as? HTTPURLResponse)?.statusCode == 401)
        #expect(challenge.proposedCredential == nil)
        #expect(server.requests.count == 4)
        // Only the confirmed credential is stored.
        let stored = configuration.urlCredentialStorage?.allCredentials ?? [:]
        #expect(stored.count == 1 && stored.values.first?["user"]?.password == "right")
    }

    @Test(
        "an upload whose append is answered with 401 continues at the server's offset, with the credential in each request"
    )
    func upload() async throws {
        let model = ScriptedUpload()
        let isLocked = Monitor(false)
        let server = try ScriptedServer { request, reply in
            if request.method == "PATCH", model.inventory.count >= 300_000 { isLocked.withLock { $0 = true } }
            if isLocked.withLock({ $0 }), !isAuthorized(request) { return try reject(reply) }
            try model.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(authenticate: { _ in (.useCredential, credential("right")) })
        let session = fixture.session(delegate, configuration: .ephemeral) {
            $0.creation = .careful
            $0.maxRequestContentLength = 300_000
        }
        session.uploadTask(
            with: try SessionFixture.request(server.url + "/a", "POST"), fromFile: try fixture.file(bytes)
        ).resume()
        #expect(try delegate.ending() == nil)
        expectSame(model.inventory.bytes, bytes)
        #expect(delegate.challenges.count == 1)
        #expect(
            server.requests.map { "\($0.method) \(isAuthorized($0))" } == [
                "POST false", "PATCH false", "PATCH false", "HEAD true", "PATCH true", "PATCH true",
            ])
    }

    @Test("default handling uses the stored credential once; without one, or if it is wrong, the 401 is the result")
    func defaultHandling() async throws {
        let server = try fileServer()
        let fixture = try SessionFixture()
        for (password, requests) in [(nil, 1), ("wrong", 2), ("right", 2)] as [(String?, Int)] {
            let before = server.requests.count
            let configuration = URLSessionConfiguration.ephemeral
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: Int(server.port), protocol: "http", realm: "the files",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            if let password {
                configuration.urlCredentialStorage?.setDefaultCredential(credential(password, .forSession), for: space)
            }
            let delegate = SessionExchangeDelegate()
            let task = fixture.session(delegate, configuration: configuration).downloadTask(
                with: try SessionFixture.request(server.url + "/a"))
            task.resume()
            let error = try delegate.ending()
            #expect(error?.code == (password == "right" ? nil : .userAuthenticationRequired))
            #expect(server.requests.count - before == requests)
            #expect(!delegate.calls.contains("session challenge"))
        }
        // Without a delegate the storage is used in the same way.
        let answer = SessionAnswer<URL>()
        fixture.session(configuration: .ephemeral).downloadTask(
            with: try SessionFixture.request(server.url + "/a"), completionHandler: answer.handler
        ).resume()
        #expect(try answer.value().urlError?.code == .userAuthenticationRequired)
    }

    @Test("a canceled challenge ends the task as canceled; a rejected one has the 401 as the response of an upload")
    func refused() async throws {
        let server = try fileServer()
        let fixture = try SessionFixture()
        for disposition in [URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, .rejectProtectionSpace] {
            let delegate = SessionExchangeDelegate(authenticate: { _ in (disposition, nil) })
            let task = fixture.session(delegate, configuration: .ephemeral).uploadTask(
                with: try SessionFixture.request(server.url + "/a", "POST"), from: Data(bytes))
            task.resume()
            let isCanceled = disposition == .cancelAuthenticationChallenge
            #expect(try delegate.ending()?.code == (isCanceled ? .cancelled : nil))
            #expect((task.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(delegate.challenges.count == 1)
        }
    }

    @Test("a challenge without Basic authentication is not passed to the delegate")
    func otherScheme() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.respond(401, ["WWW-Authenticate": "Bearer realm=\"x\""])
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(authenticate: { _ in (.useCredential, credential("right")) })
        fixture.session(delegate).downloadTask(with: try SessionFixture.request(server.url + "/a")).resume()
        #expect(try delegate.ending()?.code == .userAuthenticationRequired)
        #expect(delegate.challenges.isEmpty && server.requests.count == 1)
    }

    @Test("a proxy that requires credentials gets them, and the server does not")
    func proxy() async throws {
        let file = ScriptedFile(bytes: bytes)
        let proxy = try ScriptedServer { request, reply in
            guard isAuthorized(request, "Proxy-Authorization") else {
                return try reply.respond(407, ["Proxy-Authenticate": "Basic realm=\"proxy\""])
            }
            try file.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(authenticate: { _ in (.useCredential, credential("right")) })
        let session = fixture.session(delegate, configuration: .ephemeral) { $0.proxy = proxy.url }
        session.downloadTask(with: try SessionFixture.request("http://files.invalid/a")).resume()
        #expect(try delegate.ending() == nil)
        let space = try #require(delegate.challenges.first?.protectionSpace)
        #expect(space.isProxy() && space.realm == "proxy" && space.port == Int(proxy.port))
        #expect(proxy.requests.allSatisfy { !$0.fields.contains("Authorization") })
    }
}
