import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite("Client: the handler of a transfer's exchanges") struct ExchangeHandlerTests {
    private let file = MockFile(bytes: sampleBytes(1000))

    private func download(_ fixture: MockFixture, _ handler: ScriptedHandler) -> Download {
        var request = TransferRequest("https://files.example/a")
        request.fields = ["Authorization": "Bearer mine", "Accept-Language": "en"]
        return fixture.client.download(
            request, to: .file(fixture.directory.path + "/a"), store: nil, handler: handler)
    }

    private func redirecting(to location: String) throws -> MockFixture {
        let file = file
        return try MockFixture { request in
            request.uri.hasSuffix("/a")
                ? MockResponse(.found, ["Location": location], content: "moved") : file.response(to: request)
        }
    }

    @Test("a redirection from https to http is followed only if the handler names a URI, and never with credentials")
    func insecure() async throws {
        let refused = try redirecting(to: "http://files.example/b")
        let error = await transferError { _ = try await download(refused, ScriptedHandler()).value() }
        #expect(error?.code == .insecureRedirect && refused.requests.count == 1)
        let allowed = try redirecting(to: "http://files.example/b")
        let handler = ScriptedHandler(redirect: .redirect(to: "http://files.example/c"))
        _ = try await download(allowed, handler).value()
        #expect(allowed.requests.map(\.uri) == ["https://files.example/a", "http://files.example/c"])
        #expect(allowed.requests.last?.fields["Authorization"] == nil)
        #expect(handler.proposals.first?.uri == "http://files.example/b")
        #expect(handler.proposals.first?.fields["Authorization"] == nil)
        #expect(handler.proposals.first?.fields["Accept-Language"] == "en")
    }

    @Test("a declined redirection ends a download, including one that has received bytes")
    func declined() async throws {
        let bytes = file.bytes
        let fixture = try MockFixture { request in
            request.fields["Range"] == nil
                ? MockResponse(.ok, ["ETag": "\"a\""], content: bytes, cutAt: 500)
                : MockResponse(.temporaryRedirect, ["Location": "/b"], content: "moved")
        }
        let error = await transferError {
            _ = try await download(fixture, ScriptedHandler(redirect: .decline)).value()
        }
        #expect(error?.code == .refused && error?.status == .temporaryRedirect)
        #expect(error?.response?.content == Array("moved".utf8))
        #expect(fixture.requests.count == 2)
    }

    @Test("a handler gets each request and response; a field that it adds is sent, but is hidden from observers")
    func exchange() async throws {
        let observed = Monitor<[String?]>([])
        let file = file
        let fixture = try MockFixture({
            $0.onMessage = { record in
                if case .request = record.message { observed.withLock { $0.append(record.fields["Cookie"]) } }
            }
        }) { file.response(to: $0) }
        let handler = ScriptedHandler(added: ["Cookie": "id=secret-of-the-handler"])
        let download = download(fixture, handler)
        _ = try await download.value()
        #expect(fixture.requests.first?.fields["Cookie"] == "id=secret-of-the-handler")
        #expect(observed.withLock { $0 } == ["(hidden)"])
        #expect(handler.log == ["GET", "200", "ended GET 200"])
    }

    @Test(
        "after a 401 or 407 the request is made again while the handler has other credentials", arguments: [401, 407])
    func challenge(status: Status) async throws {
        let file = file
        let turns = Monitor(0)
        let fixture = try MockFixture { request in
            let turn = turns.withLock {
                $0 += 1
                return $0
            }
            return turn <= 3 ? MockResponse(status) : file.response(to: request)
        }
        _ = try await download(fixture, ScriptedHandler(challenge: { true })).value()
        #expect(fixture.requests.count == 4)
        turns.withLock { $0 = 0 }
        let refused = await transferError {
            _ = try await download(fixture, ScriptedHandler(challenge: { false })).value()
        }
        #expect(refused?.code == .unauthorized && refused?.status == status)
        turns.withLock { $0 = 0 }
        let failed = await transferError {
            _ = try await download(fixture, ScriptedHandler(challenge: { throw Unanswered() })).value()
        }
        #expect(failed?.code == .authorizationFailed && failed?.underlying is Unanswered)
        #expect(failed?.status == status)
    }
}

private struct Unanswered: Error {}

private final class ScriptedHandler: ExchangeHandler {
    private struct State {
        var proposals: [TransferRequest] = []
        var log: [String] = []
    }

    private let state = Monitor(State())
    private let added: Fields
    private let redirect: RedirectionDecision
    private let challenge: @Sendable () throws -> Bool

    init(
        added: Fields = [:], redirect: RedirectionDecision = .follow,
        challenge: @escaping @Sendable () throws -> Bool = { false }
    ) {
        self.added = added
        self.redirect = redirect
        self.challenge = challenge
    }

    var proposals: [TransferRequest] { state.withLock { $0.proposals } }
    var log: [String] { state.withLock { $0.log } }

    private func note(_ line: String) { state.withLock { $0.log.append(line) } }

    func prepare(_ request: inout TransferRequest, for step: ClientRequest) {
        note(request.method.rawValue)
        for field in added { request.fields.set(field.name, field.value) }
    }

    func received(_ response: TransferResponse, to request: TransferRequest) { note("\(response.status.rawValue)") }

    func redirected(by response: TransferResponse, to proposed: TransferRequest) async -> RedirectionDecision {
        state.withLock { $0.proposals.append(proposed) }
        return redirect
    }

    func challenged(by response: TransferResponse, to request: TransferRequest) async throws -> Bool {
        try challenge()
    }

    func ended(_ metrics: RequestMetrics) {
        note("ended \(metrics.method.rawValue) \(metrics.status?.rawValue ?? 0)")
    }
}
