import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls
import Testing

@testable import HTTPTransport

@Suite("Client: receiving with the engine", .blocking)
struct EngineReceivingTests {
    private let fixture = EngineFixture()
    private static let bytes = Payload.bytes(3_000_000)
    private var bytes: [UInt8] { Self.bytes }

    @Test("content is written to a sink, or collected up to a limit")
    func content() async throws {
        let bytes = bytes
        let server = try ScriptedServer { _, reply in try reply.respond(206, ["ETag": "\"a\""], bytes) }
        let sink = MemorySink()
        var received: Int64 = 0
        let written = await fixture.follow(
            fixture.request("GET", server.url, ["Range": "bytes=0-"]) { head in
                #expect(head.status == 206 && head.fields["ETag"] == "\"a\"")
                return .write(sink)
            }
        ) { event, _ in if case .received(let count) = event { received = count } }
        #expect(written.failure == nil && written.isContentComplete && written.received == 3_000_000)
        #expect(sink.bytes == bytes && written.content.isEmpty && received == 3_000_000)
        let kept = await fixture.run(
            fixture.request("GET", server.url) { _ in .collect(limit: 1000, within: .seconds(600)) })
        #expect(kept.failure == nil && kept.content == Array(bytes[..<1000]) && kept.received == 1000)
    }

    @Test("a sink that cannot write ends the exchange, and so does a caller that rejects the content")
    func refusedContent() async throws {
        let bytes = bytes
        let server = try ScriptedServer { _, reply in try reply.respond(200, [:], bytes) }
        let full = MemorySink(capacity: 100_000)
        let result = await fixture.run(fixture.request("GET", server.url) { _ in .write(full) })
        #expect(result.failure == .sinkFailed(.noSpace) && result.head?.status == 200 && !result.isContentComplete)
        #expect(result.received == Int64(full.bytes.count))
        let aborted = await fixture.run(fixture.request("GET", server.url) { _ in .abort })
        #expect(aborted.failure == .canceled && aborted.head?.status == 200 && aborted.received == 0)
    }

    enum Ending: CaseIterable, Sendable { case closed, reset }

    @Test(
        "a connection that ends before the end of the content is reported as lost",
        arguments: Ending.allCases, [false, true])
    func short(ending: Ending, isChunked: Bool) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, isChunked ? ["Transfer-Encoding": "chunked"] : ["Content-Length": "1000"])
            if isChunked { try reply.send(chunk: "0123456789") } else { try reply.send("0123456789") }
            Deadline.pause(.milliseconds(100))
            if ending == .reset { reply.reset() } else { reply.close() }
        }
        let result = await fixture.run(fixture.request("GET", server.url))
        guard case .connectionLost? = result.failure else {
            Issue.record("\(result)")
            return
        }
        #expect(result.head?.status == 200 && !result.isContentComplete && result.content == Array("0123456789".utf8))
    }

    @Test("content that ends with the connection is complete")
    func untilClose() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["Connection": "close"])
            try reply.send("0123456789")
            reply.close()
        }
        let result = await fixture.run(fixture.request("GET", server.url))
        #expect(result.failure == nil && result.isContentComplete && result.content == Array("0123456789".utf8))
    }

    @Test("trailers are not used as header fields")
    func trailers() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["Transfer-Encoding": "chunked", "Trailer": "ETag"])
            try reply.send("3\r\nabc\r\n0\r\nETag: \"late\"\r\nX: y\r\n\r\n")
        }
        let result = await fixture.run(fixture.request("GET", server.url))
        #expect(result.failure == nil && result.content == Array("abc".utf8))
        #expect(result.head?.fields.contains("ETag") == false && result.head?.fields.contains("X") == false)
    }

    @Test("redirections are not followed")
    func redirection() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(307, ["Location": "/b"]) }
        let result = await fixture.run(fixture.request("GET", server.url + "/a"))
        #expect(result.head?.status == 307 && result.failure == nil && server.requests.count == 1)
        #expect(result.head?.location?.uri == server.url + "/b")
    }

    @Test("a head of more than 256 KiB is refused")
    func hugeHead() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<20 { try reply.send("X-\(number): \(String(repeating: "a", count: 20_000))\r\n") }
            try reply.send("\r\n")
            reply.close()
        }
        let result = await fixture.run(fixture.request("GET", server.url))
        guard case .protocolViolation? = result.failure else {
            Issue.record("\(result)")
            return
        }
        #expect(result.head == nil)
    }

    @Test(
        "a response that is not HTTP is refused",
        arguments: ["220 mail ready\r\n", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"])
    func notHTTP(text: String) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.send(text)
            reply.close()
        }
        let result = await fixture.run(fixture.request("GET", server.url))
        guard case .protocolViolation? = result.failure else {
            Issue.record("\(result)")
            return
        }
    }
}
