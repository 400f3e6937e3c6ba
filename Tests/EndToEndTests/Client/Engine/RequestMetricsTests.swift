import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: metrics of requests", .blocking)
struct RequestMetricsTests {
    private let bytes = Payload.bytes(300_000)

    @Test("the metrics of a request have ordered times, numbers of bytes, and whether the connection was reused")
    func times() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        for isReused in [false, true] {
            let download = try fixture.download(server.url + "/a?key=secret")
            _ = try await download.value()
            let metrics = try #require(download.metrics.first)
            #expect(download.metrics.count == 1 && metrics.method == .get && metrics.status == .ok)
            #expect(metrics.uri.hasPrefix(server.url + "/a") && !metrics.uri.contains("secret"))
            #expect(metrics.isConnectionReused == isReused && metrics.httpVersion == "HTTP/1.1")
            #expect(metrics.sent == 0 && metrics.received == 300_000)
            #expect(metrics.secureConnect == nil && (metrics.connect == nil) == isReused)
            let times = [metrics.requestStart, metrics.requestEnd, metrics.responseStart, metrics.duration].compactMap {
                $0
            }
            #expect(times.count == 4 && times == times.sorted())
            #expect(abs(metrics.startedAt.timeIntervalSinceNow) < 600)
        }
    }

    @Test("the metrics of a request over TLS contain the time of the handshake")
    func handshake() async throws {
        let server = try SecureServer()
        let fixture = try UploadFixture { $0.caFile = server.certificate }
        let download = try fixture.download(server.url + "/")
        _ = try await download.value()
        let metrics = try #require(download.metrics.first)
        let connect = try #require(metrics.connect)
        let secure = try #require(metrics.secureConnect)
        #expect(connect <= secure && secure <= metrics.duration)
    }

    @Test(
        "the metrics of a cut request, and of a request without a connection, contain only the times before the failure"
    )
    func interrupted() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.interim(103)
            try reply.discardContent(atMost: 1000)
            reply.reset()
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 0 }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/a", method: .put), from: Data(Payload.bytes(20_000_000)))
        #expect(await upload.failure() != nil)
        let metrics = try #require(upload.metrics.first { $0.method == .put })
        #expect(metrics.status == nil && metrics.requestEnd == nil && metrics.responseStart != nil && metrics.sent > 0)
        let unreachable = try fixture.download("http://127.0.0.1:\(try FixedPort.next())/")
        #expect(await unreachable.failure()?.code == .cannotConnect)
        let none = try #require(unreachable.metrics.first)
        #expect(none.connect == nil && none.requestStart == nil && !none.isConnectionReused && none.httpVersion == nil)
    }

    @Test("a transfer keeps the metrics of its last fifty requests; the closure receives the metrics of all requests")
    func many() async throws {
        let count = Monitor(0)
        let fixture = try UploadFixture {
            $0.maxRequestContentLength = 1000
            $0.onMetrics = { _ in count.withLock { $0 += 1 } }
        }
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/a", method: .put), from: Data(Payload.bytes(70_000)))
        let result = try await upload.value()
        #expect(result.requests > 70 && count.withLock { $0 } == result.requests)
        #expect(upload.metrics.count == 50 && upload.metrics.last?.status == result.status)
    }
}
