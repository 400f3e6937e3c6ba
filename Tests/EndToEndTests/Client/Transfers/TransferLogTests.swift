import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: log", .blocking)
struct TransferLogTests {
    private let bytes = Payload.bytes(1_000_000)

    private func fixture(
        _ entries: Monitor<[TransferLogEntry]>, _ level: TransferLogEntry.Level,
        _ change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) throws -> UploadFixture {
        try UploadFixture { configuration in
            configuration.onLogEntry = { entry in entries.withLock { $0.append(entry) } }
            configuration.logLevel = level
            configuration.creation = .careful
            configuration.maxRequestContentLength = 300_000
            change(&configuration)
        }
    }

    @Test("the log has an entry for an interruption and for a refresh of credentials, and no entry below the level")
    func entries() async throws {
        let model = ScriptedUpload()
        let token = RotatingToken()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 2:
                // Without a response, libcurl itself repeats a request on a connection that was used before.
                try reply.interim(102, [:])
                return reply.reset()
            case 4: token.rotate()
            default: break
            }
            guard token.isAccepted(request) else { return try token.reject(reply) }
            try model.serve(request, reply)
        }
        let entries = Monitor<[TransferLogEntry]>([])
        let fixture = try fixture(entries, .info) { token.configure(&$0) }
        let request = TransferRequest(server.url + "/target", method: .put)
        _ = try await fixture.client.upload(request, from: DataSource(Data(bytes))).value()
        let found = entries.withLock { $0 }
        #expect(found.map(\.level).filter { $0 != .info } == [.warning, .notice])
        #expect(found.first?.level == .info && found.last?.level == .info)
        #expect(found.allSatisfy { $0.metadata["uri"] == server.url + "/target" && $0.metadata["kind"] == "upload" })
        #expect(Set(found.compactMap { $0.metadata["transfer"] }).count == 1)
        let interruption = try #require(found.first { $0.level == .warning })
        #expect(interruption.metadata["code"] == "connection-lost" && interruption.metadata["attempt"] == "1")
        #expect(found.last?.metadata["position"] == "1000000" && found.last?.metadata["total"] == "1000000")
    }

    @Test("a failure is logged as an error, and a pause as information")
    func failure() async throws {
        let server = try ScriptedServer { request, reply in
            if request.target == "/stall" { return reply.stall() }
            try reply.respond(404)
        }
        let entries = Monitor<[TransferLogEntry]>([])
        let fixture = try fixture(entries, .info)
        _ = await (try fixture.download(server.url)).failure()
        #expect(entries.withLock { $0.last?.level } == .error)
        #expect(entries.withLock { $0.last?.metadata["status"] } == "404")
        let paused = try fixture.download(server.url + "/stall")
        paused.start()
        #expect(server.awaitRequests(2))
        _ = await paused.pause()
        #expect(entries.withLock { $0.last?.level } == .info)
        #expect(entries.withLock { $0.last?.metadata["code"] } == "paused")
    }

    @Test("no entry contains a secret: credentials, queries, the upload resource, and what closures throw")
    func secrets() async throws {
        struct Leak: Error { let text = "secret-of-the-closure" }
        let model = ScriptedUpload(path: "/u/secret-of-the-resource")
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 2: return reply.reset()
            case 4: return try reply.respond(401, ["Set-Cookie": "secret-of-the-server"])
            default: try model.serve(request, reply)
            }
        }
        let entries = Monitor<[TransferLogEntry]>([])
        let fixture = try fixture(entries, .debug) { $0.refreshCredentials = { _ in throw Leak() } }
        let uri = server.url.replacingOccurrences(of: "http://", with: "http://secret-user:secret-password@")
        let request = TransferRequest(
            uri + "/target?key=secret-query", method: .put,
            fields: ["Authorization": "Bearer secret-token", "X-Api-Key": "secret-key", "Cookie": "secret-cookie"])
        let error = await fixture.client.upload(request, from: DataSource(Data(bytes))).failure()
        #expect(error?.code == .authorizationFailed)
        let found = entries.withLock { $0 }
        #expect(found.contains { $0.level == .debug } && found.last?.level == .error)
        for entry in found {
            #expect(!entry.message.contains("secret"), "\(entry)")
            for (name, value) in entry.metadata {
                #expect(!name.contains("secret") && !value.contains("secret"), "\(entry)")
            }
        }
    }
}
