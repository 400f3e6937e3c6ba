import ConformanceKit
import TestSupport
import Testing

@Suite(
    "Socket options of downloads", .blocking,
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
struct SocketOptionTests {
    @Test("while a large file is sent, the socket is not corked, which would cut each page of the file")
    func cork() throws {
        let server = try ServerProcess()
        let content = Payload.bytes(8 << 20)
        try #require(try server.exchange(Request("PUT", "/files/x", [], .bytes(content))).status == 201)
        let tracer = try Tracer(["-e", "trace=setsockopt,sendfile"], of: server)
        #expect(try server.exchange(Request("GET", "/files/x")).content == content)
        let calls = try tracer.end()
        #expect(calls.contains("sendfile("))
        #expect(!calls.contains("TCP_CORK"), "\(calls)")
    }
}
