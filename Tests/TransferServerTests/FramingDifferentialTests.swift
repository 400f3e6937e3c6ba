import HTTPTestSupport
import Testing

@testable import FramingDifferential

/// Runs some seeds of `.build/debug/FramingDifferential`. The seeds are the same in every run.
@Suite("Generated connections", .blocking)
struct FramingDifferentialTests {
    @Test(
        "H11-10 H11-16 H11-17 H11-22: the server handles the requests that a strict reader finds before the first fault"
    )
    func generated() throws {
        let differences = try FramingDifferential.run(seeds: 1..<1501)
        for difference in differences { Issue.record("\(difference)") }
    }

    @Test("libmicrohttpd combines one-byte chunks, and delivers their content with few calls")
    func smallChunks() throws {
        let daemon = try RecordingDaemon()
        defer { daemon.stop() }
        let head = "PUT /f HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let text = head + String(repeating: "1\r\nx\r\n", count: 50_000) + "0\r\n\r\n"
        let outcome = try daemon.exchange(GeneratedTraffic(bytes: Array(text.utf8)))
        #expect(outcome.requests.map(\.content) == [[UInt8](repeating: 0x78, count: 50_000)])
        #expect(outcome.contentCalls < 2000)
    }
}
