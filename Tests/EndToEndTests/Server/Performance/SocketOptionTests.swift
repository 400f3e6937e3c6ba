import ConformanceKit
import FoundationEssentials
import Glibc
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
        let log = server.directory.path + "/options"
        let tracer = try ChildProcess(
            "/usr/bin/strace",
            ["-f", "-e", "trace=setsockopt,sendfile", "-p", String(server.process.identifier), "-o", log])
        _ = try tracer.awaitErrorOutput { $0.contains(" attached") ? true : nil }
        #expect(try server.exchange(Request("GET", "/files/x")).content == content)
        tracer.kill(SIGTERM)
        _ = try tracer.awaitEnding()
        let calls = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
        #expect(calls.contains("sendfile("))
        #expect(!calls.contains("TCP_CORK"), "\(calls)")
    }
}
